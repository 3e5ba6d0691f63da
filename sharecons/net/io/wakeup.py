"""Waiting to be woken, at the price that the event loop asks for it.

anyio's events and scopes serve both libraries, and find out at each step which one
runs. Who waits a thousand times a second, for one record each time, has that for most
of its work: so on asyncio a wait is a future, and a deadline a timer.
"""

import asyncio
import math
from collections.abc import Awaitable
from typing import Final, Protocol

from sharecons.net.io.resumable_future import ResumableFuture

__all__ = ["FOREVER", "FutureWaiter", "Waiter"]

FOREVER: Final = math.inf


class Waiter(Protocol):
    """One who waits, again and again, and is woken."""

    @property
    def is_waiting(self) -> bool:
        """True from `wait` to `ended`."""
        ...

    def wake(self) -> None:
        """End the wait that is under way; nothing if none is."""
        ...

    def resume(self) -> bool:
        """As `wake`, but who waits may go on before this returns; tells whether it did.

        To be called by the event loop, outside of any task.
        """
        ...

    def wait(self, deadline: float) -> Awaitable[bool]:
        """Wait until woken; False if the deadline came before.

        To be awaited at once, and `ended` called then, whatever it came to.

        The deadline is on `anyio.current_time()`'s clock. Lets others run even where
        it has passed already. A wake may be lost to a cancel: what it was about must
        be found by looking.
        """
        ...

    def end_wait(self) -> None:
        """Nobody awaits any more."""
        ...


class FutureWaiter:
    """On asyncio's loops, and those like them."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        # What ends a loop, as `SystemExit`, others would take for a fault of the
        # connection that it came through.
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
