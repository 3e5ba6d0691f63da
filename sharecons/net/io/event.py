"""What wakes a task that waits for nothing in particular.

This module is not compiled: a coroutine is in it (docs/design.md, "Compiled").
"""

from typing import final

from sharecons.net.io.wakeup import Waiter, new_waiter

__all__ = ["AutoResetEvent"]


@final
class AutoResetEvent:
    """Wakes whoever waits; a ring while nobody waits is heard by the next who does."""

    def __init__(self) -> None:
        self._is_set = False
        self._waits = False
        self._waiter: Waiter | None = None

    def set(self) -> None:
        # If it cannot wake the waiter it raises, and has not rung.
        if self._waits and self._waiter is not None:
            self._waiter.wake()
        self._is_set = True

    async def wait_until(self, deadline: float) -> None:
        """Wait for a ring, or until the deadline on `anyio.current_time()`'s clock."""
        if not self._is_set:
            if self._waiter is None:
                # Bells are made where no event loop runs, too.
                self._waiter = new_waiter()
            self._waits = True
            try:
                await self._waiter.wait(deadline)
            finally:
                self._waits = False
                self._waiter.ended()
        self._is_set = False
