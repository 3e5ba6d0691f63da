"""A clock that starts with the demo, and a bell that rings when something happened."""

import math
from collections.abc import Callable

import anyio

__all__ = ["DemoClock"]


class DemoClock:
    """Whoever changes the ledger rings; whoever waits for a state of it hears."""

    def __init__(self) -> None:
        self._start = anyio.current_time()
        self._rung = anyio.Event()

    @property
    def now(self) -> float:
        """Seconds since the demo began."""
        return anyio.current_time() - self._start

    def ring(self) -> None:
        self._rung.set()
        self._rung = anyio.Event()

    async def until(
        self, condition: Callable[[], bool], patience: float = math.inf
    ) -> bool:
        """Wait until something is so; False if nothing happened for so many seconds.

        Cancelling this changes nothing.
        """
        while not condition():
            with anyio.move_on_after(patience) as waiting:
                await self._rung.wait()
            if waiting.cancelled_caught:
                return False
        return True
