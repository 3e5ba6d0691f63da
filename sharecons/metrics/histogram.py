"""Histograms: how many values lie between fixed bounds, and their sum."""

from typing import NamedTuple

__all__ = ["Histogram"]


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
