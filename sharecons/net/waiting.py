"""Waiting to be woken, at the price that the event loop asks for it.

anyio's events and scopes serve both libraries, and find out at each step which one
runs. Who waits a thousand times a second, for one record each time, has that for most
of its work: so on asyncio a wait is a future, and a deadline a timer.
"""

import asyncio
import math
from typing import Final, Protocol

import anyio

from sharecons.net.clock import in_trio
from sharecons.net.resuming import ResumableFuture

__all__ = ["FOREVER", "EventWaiter", "FutureWaiter", "Waiter", "new_waiter"]

FOREVER: Final = math.inf


class Waiter(Protocol):
    """One who waits, again and again, and is woken."""

    @property
    def waits(self) -> bool:
        """True while `wait` is under way."""
        ...

    def wake(self) -> None:
        """End the wait that is under way; nothing if none is."""
        ...

    def resume(self) -> bool:
        """As `wake`, but who waits may go on before this returns; tells whether it did.

        To be called by the event loop, outside of any task.
        """
        ...

    async def wait(self, deadline: float) -> bool:
        """Wait until woken; False if the deadline came before.

        The deadline is on `anyio.current_time()`'s clock. Lets others run even where
        it has passed already. A wake may be lost to a cancel: what it was about must
        be found by looking.
        """
        ...


def new_waiter() -> Waiter:
    """Make a waiter for the running event loop."""
    return EventWaiter() if in_trio() else FutureWaiter()


class FutureWaiter:
    """On asyncio's loops, and those like them.

    Only asyncio's own resume: what ends a loop, as `SystemExit`, uvloop would take for
    a fault of the connection that it came through.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._resumes = isinstance(self._loop, asyncio.BaseEventLoop)
        self._future: asyncio.Future[bool] | None = None

    @property
    def waits(self) -> bool:
        return self._future is not None

    def wake(self) -> None:
        self._end(True)

    def resume(self) -> bool:
        future = self._future
        if isinstance(future, ResumableFuture) and future.resume(True):
            return True
        self._end(True)
        return False

    async def wait(self, deadline: float) -> bool:
        if self._resumes:
            self._future = ResumableFuture(loop=self._loop)
        else:
            self._future = self._loop.create_future()
        timer: asyncio.TimerHandle | None = None
        if deadline != FOREVER:
            timer = self._loop.call_at(deadline, self._end, False)
        try:
            return await self._future
        finally:
            self._future = None
            if timer is not None:
                timer.cancel()

    def _end(self, woken: bool) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(woken)


class EventWaiter:
    """On any event loop, by anyio's means."""

    def __init__(self) -> None:
        self._event: anyio.Event | None = None

    @property
    def waits(self) -> bool:
        return self._event is not None

    def wake(self) -> None:
        if self._event is not None:
            self._event.set()

    def resume(self) -> bool:
        self.wake()
        return False

    async def wait(self, deadline: float) -> bool:
        self._event = anyio.Event()
        try:
            if deadline == FOREVER:
                await self._event.wait()
                return True
            with anyio.CancelScope(deadline=deadline):
                await self._event.wait()
                return True
            return False
        finally:
            self._event = None
