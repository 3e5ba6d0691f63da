"""The records at the unsettled offsets of partitions: the oldest, and missing ones.

Not every offset has a record that is delivered: there are markers of transactions,
records of aborted transactions, and offsets that a compaction has removed.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from sharecons.group_state.offset_states import (
    OffsetRange,
    OffsetStatus,
    OldestRecord,
)
from sharecons.protocol.log_reader.log_slice import LogSlice

__all__ = ["FoundRecords", "RecordSearch", "continued", "joined"]


class FoundRecords(NamedTuple):
    """The result of a search in one partition.

    Attributes:
        first_offset: where the search began: the first unsettled offset.
        oldest: the first unsettled record; None if none was found.
        next_offset: the search has seen all offsets before this one.
        without_record: first and last of the unsettled offsets without a record.
    """

    first_offset: int
    oldest: OldestRecord | None
    next_offset: int
    without_record: tuple[tuple[int, int], ...]


class RecordSearch:
    """The search in one partition.

    Args:
        committed: the group does not receive records of aborted transactions.
        with_gaps: also search the offsets between stored states.
    """

    def __init__(
        self, wanted: Sequence[OffsetRange], *, committed: bool, with_gaps: bool
    ) -> None:
        self.committed = committed
        self.offset = wanted[0].first_offset
        self._wanted = wanted
        self._oldest: OldestRecord | None = None
        self._present: list[int] = []
        self._is_damaged = False
        gaps = [each.last_offset for each in wanted if _is_gap(each)]
        self._last_gap = gaps[-1] if gaps and committed and with_gaps else -1

    def add(self, log_slice: LogSlice) -> bool:
        """Search a slice; return True if the search has ended."""
        for record in log_slice.records:
            if self._is_wanted(record.offset):
                self._present.append(record.offset)
                if self._oldest is None:
                    self._oldest = OldestRecord(
                        offset=record.offset, timestamp=record.timestamp
                    )
        self._is_damaged = self._is_damaged or bool(log_slice.damaged)
        self.offset = log_slice.next_offset
        if self._oldest is not None and self.offset > self._last_gap:
            return True
        return self.offset > self._wanted[-1].last_offset

    def result(self) -> FoundRecords:
        # A damaged record is still delivered.
        missing = () if self._is_damaged else tuple(self._without_record())
        return FoundRecords(
            self._wanted[0].first_offset, self._oldest, self.offset, missing
        )

    def _without_record(self) -> Sequence[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        present = iter([*self._present, self.offset])
        next_present = next(present)
        for each in self._wanted:
            first = each.first_offset
            last = min(each.last_offset, self.offset - 1)
            while first <= last:
                while next_present < first:
                    next_present = next(present)
                if next_present > first:
                    found.append((first, min(last, next_present - 1)))
                first = next_present + 1
        return found

    def _is_wanted(self, offset: int) -> bool:
        index = bisect_right(self._wanted, offset, key=lambda each: each.first_offset)
        return index > 0 and offset <= self._wanted[index - 1].last_offset


def is_current(known: FoundRecords, unsettled: Sequence[OffsetRange]) -> bool:
    """Return True if a search began at the first unsettled offset of now.

    And if the record that it found is still unsettled: it can be behind offsets without
    records, which are never settled.
    """
    if not unsettled or known.first_offset != unsettled[0].first_offset:
        return False
    return known.oldest is None or any(
        each.first_offset <= known.oldest.offset <= each.last_offset
        for each in unsettled
    )


def continued(
    known: FoundRecords | None, unsettled: Sequence[OffsetRange]
) -> Sequence[OffsetRange]:
    """Return the unsettled ranges that are still to be searched."""
    if known is None or not is_current(known, unsettled):
        return unsettled
    if known.oldest is not None:
        return ()
    return tuple(
        replace(each, first_offset=max(known.next_offset, each.first_offset))
        for each in unsettled
        if each.last_offset >= known.next_offset
    )


def joined(
    known: FoundRecords | None,
    found: FoundRecords | None,
    unsettled: Sequence[OffsetRange],
) -> FoundRecords | None:
    """Return what an earlier search and its continuation found."""
    if known is not None and not is_current(known, unsettled):
        known = None
    latest = found or known
    if latest is None or not unsettled:
        return None
    missing = [one for each in (known, found) if each for one in each.without_record]
    return latest._replace(
        first_offset=unsettled[0].first_offset,
        without_record=_within(missing, unsettled),
    )


def _within(
    missing: Sequence[tuple[int, int]], unsettled: Sequence[OffsetRange]
) -> tuple[tuple[int, int], ...]:
    """Return the parts that are unsettled: each within one range, as long as can be.

    Without joining them, their number would grow with each search.
    """
    found: list[tuple[int, int]] = []
    for each in unsettled:
        begin = len(found)
        for first, last in missing:
            if first > each.last_offset or last < each.first_offset:
                continue
            piece = max(first, each.first_offset), min(last, each.last_offset)
            if len(found) > begin and found[-1][1] + 1 >= piece[0]:
                piece = found.pop()[0], piece[1]
            found.append(piece)
    return tuple(found)


def _is_gap(offset_range: OffsetRange) -> bool:
    return (
        offset_range.status is OffsetStatus.OPEN and offset_range.delivery_count is None
    )
