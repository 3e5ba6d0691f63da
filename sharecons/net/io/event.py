"""Waking tasks: an auto-reset event, and waiters for both event loops.

This module is not compiled: a coroutine is in it (docs/design.md, "Compiled").
"""

import math
from typing import final

import anyio

from sharecons.net.io.clock import in_trio
from sharecons.net.io.wakeup import FutureWaiter, Waiter

__all__ = ["AutoResetEvent", "EventWaiter", "new_waiter"]


@final
class AutoResetEvent:
    """An event for one waiting task, cleared when a wait ends.

    Setting it while no task waits ends the next wait at once.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._is_waiting = False
        self._waiter: Waiter | None = None

    def set(self) -> None:
        # Waking raises if the event loop is closed; the event is not set then.
        if self._is_waiting and self._waiter is not None:
            self._waiter.wake()
        self._is_set = True

    async def wait_until(self, deadline: float) -> None:
        """Wait until the event is set, or until the deadline.

        Args:
            deadline: on the clock of `anyio.current_time()`.
        """
        if not self._is_set:
            if self._waiter is None:
                # Events may be created where no event loop runs.
                self._waiter = new_waiter()
            self._is_waiting = True
            try:
                await self._waiter.wait(deadline)
            finally:
                self._is_waiting = False
                self._waiter.end_wait()
        self._is_set = False


def new_waiter() -> Waiter:
    """Return a waiter for the running event loop."""
    return EventWaiter() if in_trio() else FutureWaiter()


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

    def resume(self) -> bool:
        self.wake()
        return False

    async def wait(self, deadline: float) -> bool:
        self._event = anyio.Event()
        if deadline == math.inf:
            await self._event.wait()
            return True
        with anyio.CancelScope(deadline=deadline):
            await self._event.wait()
            return True
        return False

    def end_wait(self) -> None:
        self._event = None
