"""The status of each offset of a share-partition, if known.

Rule 1: each state that an offset can have has a name here.
Rule 2: nothing here depends on where the state was read, or judges it.

Theory of operation
-------------------
The share coordinator stores which records were acknowledged, archived or released, but
not which are locked: only the partition leader knows locks, in memory (KIP-932,
"In-flight records"). So an unsettled offset is either available or locked. There are
two cases. Up to the last offset in the stored state, it was delivered at least once.
Above, it is locked for the first time or was never delivered.

"Settled" means acknowledged or archived.
"""

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sharecons.protocol.admin.models import (
    DeliveryState,
    SharePartitionState,
    StateBatch,
)

__all__ = [
    "ARCHIVED",
    "SETTLED",
    "UNSETTLED",
    "OffsetRange",
    "OffsetStatus",
    "OldestRecord",
    "offset_ranges_of",
    "window_of",
    "without_records",
]


class OffsetStatus(enum.Enum):
    """Status of an offset; JSON has the values."""

    ACKNOWLEDGED = "acknowledged"
    ARCHIVED = "archived"
    """Rejected, or at its delivery limit: not delivered again."""
    ARCHIVING = "archiving"
    """Like ARCHIVED, while its dead letter is being written (KIP-1191)."""
    UNKNOWN = "unknown"
    """In a state that a newer broker introduced."""
    OPEN = "available_or_locked"
    """Delivered before, and not settled."""
    ABOVE = "above"
    """Above the stored state: locked for the first time, or never delivered."""
    REMOVED = "removed"
    """Not settled, but retention removed the record."""
    NO_RECORD = "no_record"
    """Nothing to deliver: a marker of a transaction, a record of an aborted one for a
    group that reads committed records, or a record that a compaction removed."""


ARCHIVED: Final = (OffsetStatus.ARCHIVED, OffsetStatus.ARCHIVING)
SETTLED: Final = (OffsetStatus.ACKNOWLEDGED, *ARCHIVED, OffsetStatus.NO_RECORD)
UNSETTLED: Final = (OffsetStatus.OPEN, OffsetStatus.ABOVE)

_STATUSES: Final = {
    DeliveryState.ACKNOWLEDGED: OffsetStatus.ACKNOWLEDGED,
    DeliveryState.ARCHIVED: OffsetStatus.ARCHIVED,
    DeliveryState.ARCHIVING: OffsetStatus.ARCHIVING,
    DeliveryState.AVAILABLE: OffsetStatus.OPEN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """Consecutive offsets with the same status; both ends included.

    `delivery_count` is None if the stored state has none.
    """

    first_offset: int
    last_offset: int
    status: OffsetStatus
    delivery_count: int | None = None

    @property
    def count(self) -> int:
        return self.last_offset - self.first_offset + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OldestRecord:
    """The oldest unsettled record.

    Attributes:
        timestamp: milliseconds since the epoch; negative if the record has none (Kafka
            writes -1).
    """

    offset: int
    timestamp: int

    def age(self, at: float) -> float | None:
        """Return the record's age in seconds; None if it has no timestamp.

        Args:
            at: the present time, in seconds since the epoch.
        """
        return None if self.timestamp < 0 else at - self.timestamp / 1000


def window_of(start_offset: int, ranges: Sequence[OffsetRange]) -> int:
    """Return the number of offsets from the start to the last in the stored state."""
    # A range without records that is within the stored state is before a stored one.
    above = (OffsetStatus.ABOVE, OffsetStatus.NO_RECORD)
    below = [each for each in ranges if each.status not in above]
    return below[-1].last_offset - start_offset + 1 if below else 0


def offset_ranges_of(
    state: SharePartitionState,
    log_start_offset: int | None,
    end_offset: int | None,
    first_offset: int | None = None,
) -> tuple[OffsetRange, ...]:
    """Return the status of all offsets, from the start offset to the log's end.

    Without an end, they go to the last offset in the stored state. `first_offset` is
    where the group begins if no start offset is stored, or None.
    """
    start = first_offset if state.start_offset is None else state.start_offset
    if start is None:
        return ()
    named = _ranges(start, state.batches, end_offset)
    cut = (
        piece for each in named for piece in _split_removed(each, log_start_offset or 0)
    )
    return tuple(cut)


def without_records(
    ranges: Sequence[OffsetRange], missing: Sequence[tuple[int, int]]
) -> tuple[OffsetRange, ...]:
    """Return the ranges, with the status NO_RECORD for these first and last offsets.

    Each pair is within one unsettled range; all are in order.
    """
    result: list[OffsetRange] = []
    pieces = list(reversed(missing))
    for each in ranges:
        first = each.first_offset
        while pieces and pieces[-1][0] <= each.last_offset:
            begin, end = pieces.pop()
            if begin > first:
                result.append(replace(each, first_offset=first, last_offset=begin - 1))
            result.append(_offset_range(begin, end, OffsetStatus.NO_RECORD))
            first = end + 1
        if first <= each.last_offset:
            result.append(replace(each, first_offset=first))
    return tuple(result)


def _ranges(
    start_offset: int, batches: tuple[StateBatch, ...], end_offset: int | None
) -> Iterator[OffsetRange]:
    next_offset = start_offset
    for batch in batches:
        if batch.first_offset > next_offset:
            yield _offset_range(next_offset, batch.first_offset - 1, OffsetStatus.OPEN)
        first = max(next_offset, batch.first_offset)
        if first > batch.last_offset:
            continue
        status = _STATUSES.get(batch.state, OffsetStatus.UNKNOWN)
        yield _offset_range(first, batch.last_offset, status, batch.delivery_count)
        next_offset = batch.last_offset + 1
    if end_offset is not None and next_offset < end_offset:
        yield _offset_range(next_offset, end_offset - 1, OffsetStatus.ABOVE)


def _split_removed(
    offset_range: OffsetRange, log_start_offset: int
) -> Iterator[OffsetRange]:
    """Split off the part before the log's start, with status REMOVED."""
    first, last = offset_range.first_offset, offset_range.last_offset
    if offset_range.status not in UNSETTLED or first >= log_start_offset:
        yield offset_range
        return
    yield _offset_range(first, min(last, log_start_offset - 1), OffsetStatus.REMOVED)
    if last >= log_start_offset:
        yield _offset_range(
            log_start_offset, last, offset_range.status, offset_range.delivery_count
        )


def _offset_range(
    first: int, last: int, status: OffsetStatus, delivery_count: int | None = None
) -> OffsetRange:
    return OffsetRange(
        first_offset=first,
        last_offset=last,
        status=status,
        delivery_count=delivery_count,
    )
