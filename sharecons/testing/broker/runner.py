"""Runs brokers on the caller's event loop, or on an event loop in a thread.

On the caller's event loop they run in a task of their own, so that any task can stop
them: test fixtures, async generators and exit stacks start in one task and end in
another, which anyio's task groups do not allow.
"""

import asyncio
import contextvars
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, ExitStack
from typing import Any, Final, TypeVar

import anyio
import anyio.from_thread
from anyio.abc import TaskGroup

__all__ = ["NOT_RUNNING", "BrokerRunner"]

T = TypeVar("T")

NOT_RUNNING: Final = (
    "the embedded broker is not running: enter it first, and use it within the block"
)

_RUNNING: Final[set["asyncio.Task[None]"]] = set()
"""The event loop refers to its tasks only weakly."""


class BrokerRunner:
    """Runs the brokers and calls into their event loop from any thread.

    Args:
        start: starts the brokers, given a task group; can raise OSError or
            RequestError.
        close: closes the brokers, but not their tasks.
    """

    def __init__(
        self, start: Callable[[TaskGroup], None], close: Callable[[], None]
    ) -> None:
        self._start = start
        self._close = close
        self._thread: int | None = None
        self._pid: int | None = None
        self._portal: anyio.from_thread.BlockingPortal
        self._scope: anyio.CancelScope
        self._started: anyio.Event
        self._stopped: anyio.Event
        self._failure: BaseException | None = None
        self._stack = ExitStack()

    def call(self, do: Callable[[], T]) -> T:
        """Run a function on the event loop, from any thread.

        Raises:
            RuntimeError: the brokers are not running, or run in another process.
        """
        if self._pid not in (None, os.getpid()):
            raise RuntimeError(
                f"the embedded broker runs in process {self._pid}, the parent of this "
                "one: use the object there, or connect to bootstrap_servers"
            )
        if self._thread is None:
            raise RuntimeError(NOT_RUNNING)
        if self._thread == threading.get_ident():
            return _call_here(do)
        return self._portal.call(do)

    async def start(self) -> None:
        """Start on this event loop.

        Raises:
            RuntimeError: the brokers are running already.
            OSError, RequestError: raised by `start`.
        """
        if self._thread is not None:
            raise RuntimeError("the embedded broker is running already")
        self._thread, self._pid = threading.get_ident(), os.getpid()
        self._scope = anyio.CancelScope()
        self._started, self._stopped = anyio.Event(), anyio.Event()
        self._failure = None
        _spawn(self._run, self._stopped)
        try:
            await self._started.wait()
        except BaseException:
            self._scope.cancel()
            raise
        if self._stopped.is_set():
            self._raise_failure()

    async def stop(self) -> None:
        """Stop; do nothing if the brokers are not running.

        Raises the exception that made a broker crash.
        """
        if self._thread is None:
            return
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._stopped.wait()
        self._raise_failure()

    def start_thread(self, entered: AbstractAsyncContextManager[object]) -> None:
        """Run an event loop in a thread and enter `entered` there, which starts."""
        with ExitStack() as stack:
            portal = stack.enter_context(
                anyio.from_thread.start_blocking_portal("asyncio")
            )
            stack.enter_context(portal.wrap_async_context_manager(entered))
            self._stack = stack.pop_all()

    def stop_thread(self) -> None:
        """Stop the thread; do nothing in a forked process."""
        if self._pid in (None, os.getpid()):
            self._stack.close()

    async def _run(self) -> None:
        try:
            with self._scope:
                async with (
                    anyio.from_thread.BlockingPortal() as self._portal,
                    anyio.create_task_group() as tasks,
                ):
                    await self._serve(tasks)
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:  # noqa: BLE001 (raised by `start` or `stop`)
            self._failure = _unwrap_group(error)
        finally:
            self._thread = None
            self._started.set()
            self._stopped.set()

    async def _serve(self, tasks: TaskGroup) -> None:
        try:
            self._start(tasks)
            self._started.set()
            await anyio.sleep_forever()
        finally:
            self._close()
            tasks.cancel_scope.cancel()

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


def _call_here(do: Callable[[], T]) -> T:
    """Call a function in this thread, in a task or in a callback of the event loop.

    A callback of asyncio has no task, by which sniffio, and so anyio, recognises the
    library.
    """
    sniffio = sys.modules.get("sniffio")
    if sniffio is None or not _in_callback():
        return do()
    context = contextvars.copy_context()
    context.run(sniffio.current_async_library_cvar.set, "asyncio")
    return context.run(do)


def _in_callback() -> bool:
    """Return whether asyncio's event loop runs in this thread, outside of a task."""
    try:
        return asyncio.current_task() is None
    except RuntimeError:  # no event loop of asyncio runs
        return False


def _spawn(run: Callable[[], Coroutine[Any, Any, None]], done: anyio.Event) -> None:
    """Run in a task without a parent, and set `done` once it has ended."""
    trio: Any = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        trio.lowlevel.spawn_system_task(run)
        return
    task = asyncio.get_running_loop().create_task(run())
    _RUNNING.add(task)
    task.add_done_callback(_RUNNING.discard)
    task.add_done_callback(lambda _: done.set())  # even if cancelled before its start


def _unwrap_group(error: BaseException) -> BaseException:
    """Unwrap nested exception groups that contain one exception."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
