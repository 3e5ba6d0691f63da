"""The times at which a broker deletes expired offsets (KIP-211).

An offset expires some time before its broker deletes it: at the next check.
"""

import math

__all__ = ["OffsetChecks"]

PRECISION = 6  # decimal places, so that a check is not missed by a rounding error


class OffsetChecks:
    """The checks of one group, at a fixed interval since its creation.

    By default there are none.

    Args:
        retention: how long offsets stay by default, in seconds.
        interval: seconds between two checks.
        start: the time of the group's creation.
    """

    def __init__(
        self,
        *,
        retention: float = math.inf,
        interval: float = math.inf,
        start: float = 0.0,
    ) -> None:
        self.retention = retention
        self._interval = interval
        self._start = start
        self._past = 0
        """The number of checks that are over."""

    def next_check(self, at: float) -> float:
        """Return the time of the first future check at or after a time."""
        if at == math.inf:
            return at
        number = max(math.ceil(self._intervals(at)), self._past + 1)
        return self._start + number * self._interval

    def skip_until(self, at: float) -> None:
        """Record that the checks until a time are over, that time included."""
        self._past = max(self._past, math.floor(self._intervals(at)))

    def _intervals(self, at: float) -> float:
        """Return the number of intervals, with their fractions, until a time."""
        return round(max(at - self._start, 0.0) / self._interval, PRECISION)
