"""Where brokers run: on the event loop of who enters, or on one in a thread."""

import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from typing import TypeVar

import anyio
import anyio.from_thread
from anyio.abc import TaskGroup

from sharecons.testing.broker.placement import Refusal

__all__ = ["Host"]

T = TypeVar("T")


class Host:
    """Runs something as long as it is entered, and calls into it from any thread.

    Args:
        start: starts it, with a group for its tasks; may raise OSError or Refusal.
        close: ends it, all but the tasks.
    """

    def __init__(
        self, start: Callable[[TaskGroup], None], close: Callable[[], None]
    ) -> None:
        self._start = start
        self._close = close
        self._thread: int | None = None
        self._portal: anyio.from_thread.BlockingPortal
        self._life: AbstractAsyncContextManager[None]
        self._stack = ExitStack()

    def call(self, do: Callable[[], T]) -> T:
        """Run something on the event loop, from whatever thread.

        Raises:
            RuntimeError: it does not run.
        """
        if self._thread is None:
            raise RuntimeError("the embedded broker does not run: enter it first")
        if self._thread == threading.get_ident():
            return do()
        return self._portal.call(do)

    async def begin(self) -> None:
        """Start on this event loop."""
        self._life = self._lived()
        await self._life.__aenter__()

    async def end(self) -> None:
        # An error of the block's is not ours: told of it, the task group would put it
        # into an exception group.
        await self._life.__aexit__(None, None, None)

    def begin_in_thread(self, entered: AbstractAsyncContextManager[object]) -> None:
        """Have a thread run an event loop that enters something; it is to `begin`."""
        with ExitStack() as stack:
            portal = stack.enter_context(
                anyio.from_thread.start_blocking_portal("asyncio")
            )
            stack.enter_context(portal.wrap_async_context_manager(entered))
            self._stack = stack.pop_all()

    def end_thread(self) -> None:
        self._stack.close()

    @asynccontextmanager
    async def _lived(self) -> AsyncGenerator[None]:
        failure: Exception | None = None
        async with (
            anyio.from_thread.BlockingPortal() as self._portal,
            anyio.create_task_group() as tasks,
        ):
            self._thread = threading.get_ident()
            try:
                failure = self._failure_of_start(tasks)
                if failure is None:
                    yield
            finally:
                self._close()
                tasks.cancel_scope.cancel()
                self._thread = None
        if failure is not None:
            raise failure

    def _failure_of_start(self, tasks: TaskGroup) -> Exception | None:
        """Start; gives what went wrong, as the task groups would wrap it."""
        try:
            self._start(tasks)
        except (OSError, Refusal) as error:
            return error
        return None
