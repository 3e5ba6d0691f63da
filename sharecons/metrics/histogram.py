"""Histograms: how many values lie between fixed bounds, and their sum."""

from bisect import bisect_left
from typing import NamedTuple, final

__all__ = ["Histogram", "HistogramRecorder"]


class Histogram(NamedTuple):
    """The values that a histogram has received.

    Attributes:
        bounds: the upper bounds of the buckets, ascending; a value that is equal to a
            bound is in its bucket.
        counts: the number of values in each bucket, not cumulative; the last one counts
            the values above all bounds.
        sum: of all values.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float

    @property
    def count(self) -> int:  # type: ignore[override]  # a tuple has a method `count`
        """The number of values."""
        return sum(self.counts)


@final
class HistogramRecorder:
    """Receives values; `snapshot` returns what it has received."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, count: int = 1) -> None:
        """Add a value `count` times."""
        self.counts[bisect_left(self.bounds, value)] += count
        self.sum += value * count

    def snapshot(self) -> Histogram:
        """Return the present values; any thread can call this.

        The sum can lack a value that is being added.
        """
        return Histogram(self.bounds, tuple(self.counts), self.sum)
