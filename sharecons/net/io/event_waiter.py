"""Waiting with anyio's events, on any event loop.

This module is not compiled: a coroutine is in it (docs/design.md, "Compiled").
"""

import math

import anyio

__all__ = ["EventWaiter"]


class EventWaiter:
    """Implement `net.waiting.Waiter` with one event for each wait."""

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
        if deadline == math.inf:
            await self._event.wait()
            return True
        with anyio.CancelScope(deadline=deadline):
            await self._event.wait()
            return True
        return False

    def ended(self) -> None:
        self._event = None
