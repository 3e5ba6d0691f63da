"""A task group that belongs to no task of the application.

anyio's task groups and cancel scopes must be left by the task that entered them, and in
reverse order. A consumer can keep neither rule: test fixtures, async generators and
exit stacks start it in one task and stop it in another. So its tasks run in a task
group that a task of their own enters and leaves: a task of the event loop on asyncio, a
system task on trio.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from sharecons.net.io.event_loop import in_trio

__all__ = ["Background", "current_task", "is_task_done"]

_RUNNING: Final[set["asyncio.Task[None]"]] = set()
"""The event loop refers to its tasks only weakly."""


class Background:
    """Runs a task group until `cancel`, a crash, or the end of the event loop.

    Args:
        name: of the task.
        start: starts tasks in the group; runs in the new task.
        ended: is called once no task runs any more, with the exception that ended
            them, if any. It must not raise.
        release: is awaited after that, even if the tasks crashed.
    """

    def __init__(
        self,
        name: str,
        start_tasks: Callable[[TaskGroup], None],
        on_ended: Callable[[BaseException | None], None],
        release: Callable[[], Awaitable[None]],
    ) -> None:
        self._start_tasks = start_tasks
        self._on_ended = on_ended
        self._release = release
        self._scope = anyio.CancelScope()
        self._done = anyio.Event()
        if in_trio():
            sys.modules["trio"].lowlevel.spawn_system_task(
                self._run, name=name, context=copy_context()
            )
        else:
            task = asyncio.get_running_loop().create_task(self._run(), name=name)
            _RUNNING.add(task)
            task.add_done_callback(self._on_task_done)

    def cancel(self) -> None:
        """End the tasks."""
        self._scope.cancel()

    @property
    def has_ended(self) -> bool:
        """True once the tasks have ended and everything is released."""
        return self._done.is_set()

    async def wait(self) -> None:
        """Wait until the tasks have ended and everything is released."""
        await self._done.wait()

    async def _run(self) -> None:
        error: BaseException | None = None
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    self._start_tasks(tasks)
        except anyio.get_cancelled_exc_class() as cancelled:
            error = cancelled
            raise
        except BaseException as crash:  # noqa: BLE001 (`ended` passes it on)
            error = _unwrap_single(crash)
        finally:
            self._on_ended(error)
            try:
                await self._release()
            finally:
                self._done.set()

    def _on_task_done(self, task: "asyncio.Task[None]") -> None:
        _RUNNING.discard(task)
        if not self._done.is_set():  # it was cancelled before its first step
            self._on_ended(asyncio.CancelledError())
            self._done.set()


def current_task() -> object:
    """Return the running task, an object that can be compared."""
    if in_trio():
        task: Any = sys.modules["trio"].lowlevel.current_task()
        return task
    return asyncio.current_task()


def is_task_done(task: object) -> bool:
    """Return whether a task has ended; trio deletes its own when they end."""
    return isinstance(task, asyncio.Future) and task.done()


def _unwrap_single(error: BaseException) -> BaseException:
    """Return the one exception of nested groups that have one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
