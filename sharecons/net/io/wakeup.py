"""Waiting to be woken, with little overhead.

anyio's events and scopes look up the running library at each step. For a task that
waits a thousand times a second, each time for one record, that would be most of the
work. So on asyncio a wait is a future, and its deadline a timer.
"""

import asyncio
import math
from collections.abc import Awaitable
from typing import Final, Protocol

from sharecons.net.io.resumable_future import ResumableFuture

__all__ = ["FOREVER", "FutureWaiter", "Waiter"]

FOREVER: Final = math.inf


class Waiter(Protocol):
    """Repeated waits of one task, each ended by a wakeup or a deadline."""

    @property
    def is_waiting(self) -> bool:
        """True from `wait` to `end_wait`."""
        ...

    def wake(self) -> None:
        """End the current wait, if there is one."""
        ...

    def resume(self) -> bool:
        """Wake the task and, if possible, run it before returning.

        Call this from the event loop, outside of any task. Return whether the task ran.
        """
        ...

    def wait(self, deadline: float) -> Awaitable[bool]:
        """Wait until woken; the result is False if the deadline passed first.

        Await the result at once, and call `end_wait` afterwards, even after an error.
        Other tasks run even if the deadline has passed already. A cancel may discard a
        wakeup, so check the condition after each wait.

        Args:
            deadline: on the clock of `anyio.current_time()`.
        """
        ...

    def end_wait(self) -> None:
        """End the wait; call this after awaiting `wait`."""
        ...


class FutureWaiter:
    """A `Waiter` for asyncio's event loops, and compatible ones."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        # uvloop would treat a SystemExit as an error of the connection in whose
        # callback it was raised.
        self._propagate_exits = isinstance(self._loop, asyncio.BaseEventLoop)
        self._future: ResumableFuture | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        return self._future is not None

    def wake(self) -> None:
        if self._future is not None:
            self._future.wake(True)

    def resume(self) -> bool:
        future = self._future
        if future is None:
            return False
        if future.resume():
            return True
        future.wake(True)
        return False

    def wait(self, deadline: float) -> Awaitable[bool]:
        self._future = ResumableFuture(
            self._loop, propagate_exits=self._propagate_exits
        )
        if deadline != FOREVER:
            self._timer = self._loop.call_at(deadline, self._future.wake, False)
        return self._future

    def end_wait(self) -> None:
        self._future = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
