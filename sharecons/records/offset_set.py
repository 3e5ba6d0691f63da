"""A set of the offsets of one partition, stored as disjoint ranges.

Adjacent ranges are joined. A group delivers a partition in order, so the offsets of a
consumer or query are mostly a single range; memory grows with the number of gaps, not
with the number of records.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import final

__all__ = ["OffsetSet"]


@final
class OffsetSet:
    """A set of offsets. Both ends of a range are included."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    @classmethod
    def of(cls, offsets: Iterable[int]) -> "OffsetSet":
        """Return the set of these offsets, which must be ascending."""
        made = cls()
        firsts, lasts = made._firsts, made._lasts
        for offset in offsets:
            if lasts and lasts[-1] == offset - 1:
                lasts[-1] = offset
            else:
                firsts.append(offset)
                lasts.append(offset)
        return made

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._firsts, self._lasts, strict=True)

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def missing(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the parts of a range that are not in the set."""
        parts: list[tuple[int, int]] = []
        at = bisect_left(self._lasts, first)
        while first <= last:
            if at == len(self._firsts) or self._firsts[at] > last:
                parts.append((first, last))
                break
            if self._firsts[at] > first:
                parts.append((first, self._firsts[at] - 1))
            first = self._lasts[at] + 1
            at += 1
        return parts

    def add(self, first: int, last: int) -> None:
        # Joins adjacent ranges as well: from a range that ends just before the new
        # range to a range that starts just after it.
        low = bisect_left(self._lasts, first - 1)
        high = bisect_right(self._firsts, last + 1)
        if low < high:
            first = min(first, self._firsts[low])
            last = max(last, self._lasts[high - 1])
        self._firsts[low:high] = [first]
        self._lasts[low:high] = [last]

    def without(self, first: int, last: int) -> "OffsetSet":
        """Return a copy without a range; other threads can read this set meanwhile."""
        copy = OffsetSet()
        copy._firsts = self._firsts[:]
        copy._lasts = self._lasts[:]
        copy.remove(first, last)
        return copy

    def remove(self, first: int, last: int) -> None:
        low = bisect_left(self._lasts, first)
        high = bisect_right(self._firsts, last)
        if low >= high:
            return
        before, after = self._firsts[low], self._lasts[high - 1]
        rest = [(before, first - 1)] if before < first else []
        if after > last:
            rest.append((last + 1, after))
        self._firsts[low:high] = [kept[0] for kept in rest]
        self._lasts[low:high] = [kept[1] for kept in rest]
