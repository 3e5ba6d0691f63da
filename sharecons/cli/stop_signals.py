"""Ending a command's work at SIGINT or SIGTERM."""

import signal
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Final

import anyio
from anyio.abc import TaskGroup

from sharecons.cli.exit_codes import ExitCode
from sharecons.stop_signals import received_signals

__all__ = ["run_until_signal"]

EXIT_CODES: Final = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
}


async def run_until_signal(work: Callable[[], Awaitable[None]]) -> ExitCode:
    """Run `work`, and cancel it at SIGINT or SIGTERM; return the exit code.

    Then the signals have their default effect again, so that a second one ends the
    process while the command closes.
    """
    code = ExitCode.SUCCESS
    failure: Exception | None = None

    async def run_work(tasks: TaskGroup) -> None:
        nonlocal failure
        try:
            await work()
        except Exception as error:  # noqa: BLE001 (raised below, outside of the group)
            failure = error
        tasks.cancel_scope.cancel()

    async def wait_for_signal(tasks: TaskGroup) -> None:
        nonlocal code
        with ExitStack() as stack:
            try:
                receiver = anyio.open_signal_receiver(*received_signals())
                signals = stack.enter_context(receiver)
            except (NotImplementedError, ValueError, RuntimeError):
                # On Windows and outside the main thread, Ctrl-C raises
                # KeyboardInterrupt.
                return
            async for received in signals:
                code = EXIT_CODES[received]
                tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_signal, tasks)
        tasks.start_soon(run_work, tasks)
    if failure is not None:
        raise failure
    return code
