"""The time since the start of the demo, and waiting for changes."""

import math
from collections.abc import Callable

import anyio

__all__ = ["DemoClock"]


class DemoClock:
    """A clock that also wakes tasks that wait for a change of the job tracker."""

    def __init__(self) -> None:
        self._start = anyio.current_time()
        self._changed = anyio.Event()

    @property
    def now(self) -> float:
        """Seconds since the demo began."""
        return anyio.current_time() - self._start

    def notify(self) -> None:
        """Wake all tasks in `wait_until`, which check their conditions."""
        self._changed.set()
        self._changed = anyio.Event()

    async def wait_until(
        self, condition: Callable[[], bool], idle_timeout: float = math.inf
    ) -> bool:
        """Wait until a condition holds; return False after an idle timeout.

        Args:
            idle_timeout: seconds without a call of `notify`.
        """
        while not condition():
            with anyio.move_on_after(idle_timeout) as waiting:
                await self._changed.wait()
            if waiting.cancelled_caught:
                return False
        return True
