"""The offsets of a lease's records, by index."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, final

from sharecons.protocol.acknowledge.runs import Run, coalesce

__all__ = ["NO_OFFSETS", "RecordOffsets", "record_offsets"]


@final
class RecordOffsets:
    """The offsets of the records of a lease, in ascending order.

    Attributes:
        count: the number of records.
        base: the offset of the first record.
        is_dense: each record has the offset after the previous record's.
    """

    __slots__ = ("_offsets", "base", "count", "is_dense")

    def __init__(self, base: int, count: int, offsets: Sequence[int] = ()) -> None:
        """Set the offsets.

        Args:
            base: the first offset.
            count: the number of records.
            offsets: all offsets; empty if they are dense.
        """
        self.base = base
        self.count = count
        self.is_dense = not offsets
        self._offsets = offsets

    def offset(self, index: int) -> int:
        return self.base + index if self.is_dense else self._offsets[index]

    def index(self, offset: int) -> int:
        if self.is_dense:
            return offset - self.base
        return bisect_left(self._offsets, offset)

    def runs(self, start: int, end: int, kind: int) -> list[Run]:
        """Return the records from `start` to `end` (exclusive) as runs of one type."""
        if self.is_dense:
            first, last = self.base + start, self.base + end - 1
            # Bypasses the constructor, which mypyc does not compile: see
            # `share_messages`.
            return [tuple.__new__(Run, (first, last, kind))]
        offsets = self._offsets[start:end]
        return coalesce(Run(offset, offset, kind) for offset in offsets)

    def bounds(self, first: int, last: int) -> tuple[int, int]:
        """Return the indexes of the records with these offsets.

        The second index is after the last record, and not above the first if no record
        has one of the offsets.
        """
        if self.is_dense:
            return max(first - self.base, 0), max(last - self.base + 1, 0)
        low = bisect_left(self._offsets, first)
        return low, bisect_right(self._offsets, last)


def record_offsets(offsets: Sequence[int]) -> RecordOffsets:
    """Return ascending offsets as `RecordOffsets`."""
    count = len(offsets)
    if not count:
        return NO_OFFSETS
    base = offsets[0]
    is_dense = offsets[-1] - base + 1 == count
    return RecordOffsets(base, count, () if is_dense else offsets)


NO_OFFSETS: Final = RecordOffsets(0, 0)
"""Of leases without records, or that are not decoded yet."""
