"""Decides how many offsets of the ledger can wait for a batch.

An accepted record cannot go to another member of the group, and is not in the group's
lag any more. So a query should acquire only what its batches process soon.

Rule: no clock, no ledger and no Spark here.

Theory of operation
-------------------
With a limit of the batches the ledger holds two batches. Without one, it holds what the
query processes in TARGET_TIME, by the size and the interval of its last batches. The
interval ends when Spark plans the next batch: the source does not see when a batch
ends. So with a trigger interval above TARGET_TIME, a longer interval does not show a
slow query. Then the size doubles until the interval grows.
"""

from collections import deque
from typing import Final, final

__all__ = ["AheadLimit"]

BATCHES_AHEAD: Final = 2
"""The batches of a known maximum size that the ledger holds."""

TARGET_TIME: Final = 10.0
"""Seconds in which the query processes what the ledger holds."""

INITIAL_SIZE: Final = 1000
MIN_SIZE: Final = 100
MAX_SIZE: Final = 1_000_000
"""Offsets. A batch costs Spark some 0.3 s, so that MAX_SIZE is reached in three or four
batches, and larger batches are not faster."""

TOLERANCE: Final = 1.25
"""The factor by which intervals of equal batches differ."""

INTERVALS: Final = 8
"""Batches whose intervals are compared."""


@final
class AheadLimit:
    """The limit of one query, and the positions of its batches.

    Args:
        begin: the position of the first offset that no batch has finished.
        fixed: the limit that the user has set, or None.
        max_offsets: the maximum size of a batch, or None.
        min_offsets: the minimum size of a batch, or None; the ledger can always hold
            that number.

    Attributes:
        size: how many offsets of the ledger can be in no batch.
        planned_until: the position up to which Spark has planned batches.
        finished_until: the position up to which batches have finished.
    """

    def __init__(
        self,
        begin: int,
        *,
        fixed: int | None = None,
        max_offsets: int | None = None,
        min_offsets: int | None = None,
    ) -> None:
        self.planned_until = self.finished_until = begin
        self._is_known = False
        self._min_size = max(MIN_SIZE, min_offsets or 0)
        self._is_constant = True
        if fixed is not None:
            self.size = max(fixed, min_offsets or 0)
        elif max_offsets is not None:
            self.size = max(BATCHES_AHEAD * max_offsets, min_offsets or 0)
        else:
            self._is_constant = False
            self.size = max(INITIAL_SIZE, self._min_size)
        self._intervals: deque[float] = deque(maxlen=INTERVALS)
        self._count = 0
        self._planned_at = 0.0

    def room(self, ledger_end: int) -> int:
        """Return how many offsets can be acquired; negative if there are too many.

        There is no room before the position of the query is known: if its checkpoint
        does not fit the ledger, records that were accepted in between would be lost.
        """
        if not self._is_known:
            return 0
        return self.planned_until + self.size - ledger_end

    def on_planned(self, position: int, now: float) -> None:
        """Record up to which position Spark has planned; can be repeated."""
        self._is_known = True
        if position > self.planned_until:
            self._count += position - self.planned_until
            self._planned_at = now
            self.planned_until = position

    def on_finished(self, position: int, now: float) -> None:
        """Adapt the limit after batches up to a position; can be repeated."""
        self._is_known = True
        # Replayed batches are planned by an earlier process.
        self.planned_until = max(self.planned_until, position)
        self.finished_until = max(self.finished_until, position)
        if not self._count or self.finished_until < self.planned_until:
            return
        if not self._is_constant:
            self._adapt(max(now - self._planned_at, 1e-3))
        self._count = 0

    def _adapt(self, seconds: float) -> None:
        size = self._next_size(seconds)
        if seconds <= TARGET_TIME:
            # A small batch takes little more than its fixed cost.
            size = max(size, self.size // 2)
        self.size = max(self._min_size, min(size, MAX_SIZE))
        self._intervals.append(seconds)

    def _next_size(self, seconds: float) -> int:
        shortest = min(self._intervals, default=0.0)
        if shortest <= TOLERANCE * TARGET_TIME:
            return int(self._count * TARGET_TIME / seconds)
        if seconds <= TOLERANCE * shortest:
            return 2 * self._count
        return int(self._count * shortest / seconds)
