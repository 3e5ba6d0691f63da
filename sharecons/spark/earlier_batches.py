"""The batches of earlier runs, by which a query recognizes an older checkpoint.

A checkpoint can be older than its ledger: restored from a backup, copied, or without
its newest files after a power failure. Spark then plans batches that have finished once
more, with other ends: their records would be in the output twice, or a sink that knows
the number of a batch would skip the new records in it.

Rule: no clock, no ledger and no Spark here.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import final

__all__ = ["EarlierBatches"]


@final
class EarlierBatches:
    """The positions at which batches of earlier runs ended.

    Args:
        finished: batches up to this position have finished.
        ends: where batches ended whose results are stored; the sink recognizes these.
    """

    def __init__(self, finished: int, ends: Iterable[int] = ()) -> None:
        self._finished = finished
        self._ends = sorted(ends)

    def end_after(self, position: int) -> int | None:
        """Return where a stored batch ends that begins here; None if there is none."""
        index = bisect_right(self._ends, position)
        return self._ends[index] if index < len(self._ends) else None

    def finished_after(self, position: int) -> int | None:
        """Return up to where batches beyond this position have finished, or None.

        Planning a batch at this position would repeat them with other ends.
        """
        return self._finished if position < self._finished else None

    def is_stored(self, end: int) -> bool:
        """Return whether the results of a batch that ends here are stored."""
        return end in self._ends
