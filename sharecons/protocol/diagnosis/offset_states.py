"""A share-partition seen from inside: what has become of each offset, as far as told.

Rule 1: what is known of an offset is named here; what is not known gets no name.
Rule 2: nothing here knows where the state was read, or what is wrong with it.

Theory of operation
-------------------
The share coordinator keeps what was settled or let go, and never what is locked: locks
are in the leader's memory alone (KIP-932, "In-flight records"). So of an offset that is
not settled nobody outside can tell whether it is available or locked. Two cases differ:
below the last offset that was ever written, it has been handed out at least once; above
it, it is locked for the first time or was not handed out yet.
"""

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    "Oldest",
    "PartitionInspection",
    "offset_ranges_of",
    "window_of",
]


class OffsetStatus(enum.Enum):
    """What is known of an offset; the values are those of JSON."""

    ACKNOWLEDGED = "acknowledged"
    ARCHIVED = "archived"
    """Rejected, or at its delivery limit: not delivered again."""
    ARCHIVING = "archiving"
    """As ARCHIVED, while its dead letter is being written (KIP-1191)."""
    UNKNOWN = "unknown"
    """In a state that a newer broker introduced."""
    OPEN = "available_or_locked"
    """Handed out before, and not settled."""
    ABOVE = "above"
    """Above all that was written: locked for the first time, or not handed out yet."""
    REMOVED = "removed"
    """Not settled, but retention removed the record."""


ARCHIVED: Final = (OffsetStatus.ARCHIVED, OffsetStatus.ARCHIVING)
SETTLED: Final = (OffsetStatus.ACKNOWLEDGED, *ARCHIVED)
UNSETTLED: Final = (OffsetStatus.OPEN, OffsetStatus.ABOVE)

_STATUSES: Final = {
    DeliveryState.ACKNOWLEDGED: OffsetStatus.ACKNOWLEDGED,
    DeliveryState.ARCHIVED: OffsetStatus.ARCHIVED,
    DeliveryState.ARCHIVING: OffsetStatus.ARCHIVING,
    DeliveryState.AVAILABLE: OffsetStatus.OPEN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """Neighbouring offsets that stand alike; both ends included.

    `delivery_count` is None where nothing was written of it.
    """

    first_offset: int
    last_offset: int
    status: OffsetStatus
    delivery_count: int | None = None

    @property
    def count(self) -> int:
        return self.last_offset - self.first_offset + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Oldest:
    """The oldest record that is not settled; its timestamp in milliseconds."""

    offset: int
    timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionInspection:
    """A share-partition, from its start offset to the log's end.

    Attributes:
        start_offset: None where the group has not begun.
        log_start_offset, end_offset: of the log, the latter the next to be written;
            None if its leader did not tell.
        stretches: all offsets from start to end, in order, without a hole.
        oldest: None if all is settled, or the record could not be read.
        members: ids of those that the partition is assigned to.
        written: when the state was last written, in milliseconds since the epoch;
            known only where its records were read.
    """

    start_offset: int | None
    log_start_offset: int | None = None
    end_offset: int | None = None
    ranges: tuple[OffsetRange, ...] = ()
    oldest: Oldest | None = None
    members: tuple[str, ...] = ()
    last_written: int | None = None

    def count(self, *standings: OffsetStatus) -> int:
        """Count the offsets that stand so."""
        return sum(each.count for each in self.ranges if each.status in standings)

    @property
    def first_unsettled(self) -> int | None:
        """The first offset that is not settled, if there is any."""
        return next(
            (e.first_offset for e in self.ranges if e.status in UNSETTLED), None
        )

    @property
    def window(self) -> int:
        """Offsets from the start to the last that was written: in flight at least."""
        if self.start_offset is None:
            return 0
        return window_of(self.start_offset, self.ranges)

    @property
    def delivery_counts(self) -> dict[int, int]:
        """How many offsets that are not settled were delivered how often."""
        counts: dict[int, int] = {}
        for each in self.ranges:
            if each.status is OffsetStatus.OPEN and each.delivery_count is not None:
                count = each.delivery_count
                counts[count] = counts.get(count, 0) + each.count
        return dict(sorted(counts.items()))


def window_of(start_offset: int, ranges: Sequence[OffsetRange]) -> int:
    """Return the offsets from the start to the last that was written."""
    below = [each for each in ranges if each.status is not OffsetStatus.ABOVE]
    return below[-1].last_offset - start_offset + 1 if below else 0


def offset_ranges_of(
    state: SharePartitionState, log_start_offset: int | None, end_offset: int | None
) -> tuple[OffsetRange, ...]:
    """Name what stands how, from the start offset to the log's end.

    Without an end it goes to the last offset that was written.
    """
    if state.start_offset is None:
        return ()
    named = _ranges(state.start_offset, state.batches, end_offset)
    cut = (
        piece for each in named for piece in _split_removed(each, log_start_offset or 0)
    )
    return tuple(cut)


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
    """Name apart what lies before the log's start."""
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
