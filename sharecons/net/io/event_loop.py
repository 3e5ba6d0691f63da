"""The event loop, asyncio's or trio's: its clock, waking tasks, and a guard.

anyio's events and scopes look up the running library at each step. For a task that
waits a thousand times a second, each time for one record, that would be most of the
work. So on asyncio a wait is a future, and its deadline a timer.
"""

import asyncio
import math
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, final

import anyio

from sharecons.errors import WrongThreadError

__all__ = [
    "FOREVER",
    "AutoResetEvent",
    "ChangeEvent",
    "Clock",
    "LoopGuard",
    "Waiter",
    "call_soon_function",
    "in_trio",
    "new_waiter",
    "running_clock",
]

FOREVER: Final = math.inf


@final
class AutoResetEvent:
    """An event for one waiting task, cleared when a wait ends.

    Setting it while no task waits ends the next wait immediately.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._waiter: Waiter | None = None

    def set(self) -> None:
        if self._is_set:
            return
        if self._waiter is not None:
            self._waiter.wake()  # raises if the event loop is closed
        self._is_set = True

    async def wait_until(self, deadline: float) -> None:
        """Wait until the event is set, or until the deadline.

        Args:
            deadline: on the clock of `anyio.current_time()`.
        """
        if not self._is_set:
            if self._waiter is None:
                # Events are also created where no event loop runs.
                self._waiter = new_waiter()
            try:
                await self._waiter.wait(deadline)
            finally:
                self._waiter.end_wait()
        self._is_set = False


@final
class ChangeEvent:
    """An event for any number of waiting tasks: each wait ends at the next `set`."""

    def __init__(self) -> None:
        self._next: anyio.Event | None = None

    def set(self) -> None:
        if self._next is not None:
            self._next.set()
            self._next = None

    async def wait(self) -> None:
        if self._next is None:
            self._next = anyio.Event()
        await self._next.wait()


class Waiter(Protocol):
    """Repeated waits of one task, each ended by a wakeup or a deadline."""

    @property
    def is_waiting(self) -> bool:
        """True from `wait` to `end_wait`."""
        ...

    def wake(self) -> None:
        """End the current wait, if there is one.

        Raises:
            RuntimeError: the event loop is closed; nothing has changed.
        """
        ...

    def wait(self, deadline: float) -> Awaitable[bool]:
        """Wait until woken; the result is False if the deadline passed first.

        Await the result immediately, and call `end_wait` afterwards, even after an
        error. Other tasks run even if the deadline has passed already. A cancel can
        discard a wakeup, so check the condition after each wait.

        Args:
            deadline: on the clock of `anyio.current_time()`.
        """
        ...

    def end_wait(self) -> None:
        """End the wait; call this after awaiting `wait`."""
        ...


def new_waiter() -> Waiter:
    """Return a waiter for the running event loop."""
    return EventWaiter() if in_trio() else FutureWaiter()


class FutureWaiter:
    """A `Waiter` for asyncio's event loops, and compatible ones."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[bool] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        return self._future is not None

    def wake(self) -> None:
        if self._future is None or self._future.done():
            return
        if self._loop.is_closed():
            # A future would raise this too, but as done already.
            raise RuntimeError("Event loop is closed")
        self._future.set_result(True)

    def wait(self, deadline: float) -> Awaitable[bool]:
        self._future = self._loop.create_future()
        if deadline != FOREVER:
            self._timer = self._loop.call_at(deadline, self._expire)
        return self._future

    def _expire(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(False)

    def end_wait(self) -> None:
        self._future = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class EventWaiter:
    """A `Waiter` for any event loop, with one anyio event for each wait."""

    def __init__(self) -> None:
        self._event: anyio.Event | None = None

    @property
    def is_waiting(self) -> bool:
        return self._event is not None

    def wake(self) -> None:
        if self._event is not None:
            self._event.set()

    async def wait(self, deadline: float) -> bool:
        self._event = anyio.Event()
        if deadline == FOREVER:
            await self._event.wait()
            return True
        with anyio.CancelScope(deadline=deadline):
            await self._event.wait()
            return True
        return False

    def end_wait(self) -> None:
        self._event = None


Clock = Callable[[], float]


def running_clock() -> Clock:
    """Return a function that returns the same time as `anyio.current_time()`."""
    if in_trio():
        now: Clock = sys.modules["trio"].lowlevel.current_clock().current_time
        return now
    loop = asyncio.get_running_loop()
    if getattr(type(loop), "time", None) is asyncio.BaseEventLoop.time:
        return time.monotonic  # the method only calls this function
    return loop.time


def in_trio() -> bool:
    """Return whether the running event loop is trio's."""
    # A running trio has been imported already.
    trio = sys.modules.get("trio")
    return trio is not None and trio.lowlevel.in_trio_run()


def call_soon_function() -> Callable[[Callable[[], object]], object]:
    """Return a function that schedules a call in the running event loop.

    Signal handlers and other threads can call it. It raises RuntimeError once the event
    loop is closed.
    """
    if in_trio():
        token: Any = sys.modules["trio"].lowlevel.current_trio_token()
        run_sync_soon: Callable[[Callable[[], object]], object] = token.run_sync_soon
        return run_sync_soon
    return asyncio.get_running_loop().call_soon_threadsafe


class LoopGuard:
    """Checks that calls are made in the event loop that created the guard.

    Args:
        owner: the object to guard, for the message: "consumer".
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._running_loop = _running_loop_function()
        self._loop = self._running_loop()

    def check(self) -> None:
        """Check that the caller runs in that event loop.

        Raises:
            WrongThreadError: it runs in another event loop, or in a thread without one.
        """
        try:
            running_loop = self._running_loop()
        except RuntimeError:
            running_loop = None
        if running_loop is not self._loop:
            owner = self._owner
            raise WrongThreadError(
                f"the {owner} was called outside of the event loop that it was started "
                "in; the call changed nothing. From a thread, use "
                "asyncio.run_coroutine_threadsafe(), anyio.from_thread.run() or "
                "trio.from_thread.run() for coroutines, and for plain methods "
                "loop.call_soon_threadsafe() or from_thread.run_sync(). Another event "
                f"loop needs another {owner}; a test and its fixtures need one loop"
            )


def _running_loop_function() -> Callable[[], object]:
    """Return a function that returns what identifies the event loop of its thread.

    It raises RuntimeError in a thread in which no event loop of the same library runs.
    """
    if in_trio():
        current_token: Callable[[], object] = sys.modules[
            "trio"
        ].lowlevel.current_trio_token
        return current_token
    return asyncio.get_running_loop
