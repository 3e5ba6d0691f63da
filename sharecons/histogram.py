"""Histograms: how many values lie between fixed bounds, and their sum."""

from bisect import bisect_left
from math import inf
from typing import Final, NamedTuple, final

from mypy_extensions import i64

__all__ = ["Histogram", "HistogramRecorder"]

NO_BUCKET: Final = -1


class Histogram(NamedTuple):
    """The values that a histogram has received.

    Attributes:
        bounds: the upper bounds of the buckets, ascending; a value that is equal to a
            bound is in its bucket.
        counts: the number of values in each bucket, not cumulative; the last one counts
            the values above all bounds.
        sum: of all values.
        count: the number of values.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float

    @property
    def count(self) -> int:  # type: ignore[override]  # a tuple has a method `count`
        # Without a docstring: mypyc has no place for one of a property in a tuple.
        return sum(self.counts)


@final
class HistogramRecorder:
    """Receives values; `snapshot` returns what it has received.

    A worker passes four values for each record, and most values are in the bucket of
    the value before. So the count of this bucket is kept apart from the others.

    Args:
        bounds: see `Histogram`.

    Attributes:
        sum: of all values.
    """

    __slots__ = ("_bounds", "_bucket", "_counts", "_high", "_in_bucket", "_low", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0
        # The bucket of the last value: above `_low`, up to `_high`.
        self._bucket: i64 = NO_BUCKET
        self._in_bucket: i64 = 0
        self._low = inf
        self._high = -inf

    def observe(self, value: float) -> None:
        """Add a value; only one thread can call this."""
        if not self._low < value <= self._high:
            self._change_bucket(value)
        self._in_bucket += 1
        self.sum += value

    def snapshot(self) -> Histogram:
        """Return the present values; any thread can call this.

        The sum can lack a value that is being added. No count is ever lower than in an
        earlier snapshot.
        """
        while True:
            bucket = self._bucket
            counts = self._counts.copy()
            in_bucket = self._in_bucket
            if bucket == self._bucket:
                break  # else the thread that adds values has changed the bucket
        if bucket != NO_BUCKET:
            counts[bucket] = max(counts[bucket], int(in_bucket))
        return Histogram(self._bounds, tuple(counts), self.sum)

    def _change_bucket(self, value: float) -> None:
        # Uncompiled, a snapshot can come between any two of these steps.
        if self._bucket != NO_BUCKET:
            self._counts[self._bucket] = int(self._in_bucket)
        self._bucket = NO_BUCKET
        bucket = bisect_left(self._bounds, value)
        self._in_bucket = self._counts[bucket]
        self._low = self._bounds[bucket - 1] if bucket > 0 else -inf
        self._high = self._bounds[bucket] if bucket < len(self._bounds) else inf
        self._bucket = bucket
