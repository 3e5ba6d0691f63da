"""The records at the unsettled offsets of partitions: the oldest, and missing ones.

Not every offset has a record that is delivered: there are markers of transactions,
records of aborted transactions, and offsets that a compaction has removed.
"""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.inspection.diagnosis.offset_states import (
    UNSETTLED,
    OffsetRange,
    OffsetStatus,
    OldestRecord,
)
from sharecons.protocol.log_reader.log_slice import LogSlice

__all__ = ["FoundRecords", "find_records"]

FIRST_MAX_BYTES: Final = 64 << 10
"""Bytes per partition; if the first batch is larger, the next try has more."""

MAX_TRIES: Final = 5
"""Each try has eight times the bytes of the one before; the last is more than the
largest batch that brokers accept by default. Tries are also needed if the records at
the first offsets were compacted."""


class FoundRecords(NamedTuple):
    """The result of a search in one partition.

    Attributes:
        oldest: the first unsettled record; None if none was found.
        next_offset: the search has seen all offsets before this one.
        without_record: first and last of the unsettled offsets without a record.
    """

    oldest: OldestRecord | None
    next_offset: int
    without_record: tuple[tuple[int, int], ...]


class _Search:
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
        return FoundRecords(self._oldest, self.offset, missing)

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


async def find_records(
    admin: ShareGroupAdmin,
    ranges: Mapping[TopicPartition, Sequence[OffsetRange]],
    *,
    committed: Collection[TopicPartition] = (),
    with_gaps: bool = False,
) -> dict[TopicPartition, FoundRecords]:
    """Search each partition up to its first unsettled record.

    Partitions that are settled, or whose records cannot be read, are left out.

    Args:
        committed: partitions of groups that do not receive aborted records.
        with_gaps: in these partitions, search up to the last stored state: offsets
            between states are locked, or aborted.
    """
    searches = {
        key: _Search(wanted, committed=key in committed, with_gaps=with_gaps)
        for key, each in ranges.items()
        if (wanted := [one for one in each if one.status in UNSETTLED])
    }
    found: dict[TopicPartition, FoundRecords] = {}
    max_bytes = FIRST_MAX_BYTES
    for _ in range(MAX_TRIES):
        for is_committed in (False, True):
            part = {k: s for k, s in searches.items() if s.committed is is_committed}
            if not part:
                continue
            slices = await admin.read_log(
                {key: search.offset for key, search in part.items()},
                max_bytes=max_bytes,
                read_committed=is_committed,
            )
            for key, search in part.items():
                if key not in slices.found:
                    del searches[key]
                    continue
                if search.add(slices.found[key]):
                    del searches[key]
                found[key] = search.result()
        max_bytes *= 8
    return found


def _is_gap(offset_range: OffsetRange) -> bool:
    return (
        offset_range.status is OffsetStatus.OPEN and offset_range.delivery_count is None
    )
