"""The model: the state of share groups at one time.

A value that could not be read is None, and its source is in `unread`. So an old value
is never taken for a new one. `with_earlier_values` keeps the values of an earlier
collection, each with its time and the error: for those who show both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, TypeVar

from sharecons._record import TopicPartition
from sharecons.errors import Error
from sharecons.group_state.group_facts import GroupFacts, group_facts
from sharecons.group_state.offset_states import (
    UNSETTLED,
    OffsetRange,
    OffsetStatus,
    OldestRecord,
    window_of,
)
from sharecons.group_state.record_search import FoundRecords
from sharecons.protocol.admin.models import ConfigEntry, ShareGroup

__all__ = ["GroupState", "PartitionState", "Source", "Unread", "with_earlier_values"]

Source = Literal[
    "cluster",
    "groups",
    "offsets",
    "logs",
    "states",
    "configs",
    "records",
    "topics",
    "ledgers",
]
"""Values that are read with one kind of request: they have one time and one error."""


class Unread(NamedTuple):
    """Why a source could not be read.

    Attributes:
        error: of the latest attempt.
        at: when the remaining values were read, in seconds since the epoch; None if no
            values remain.
    """

    error: Error
    at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A share-partition, from its start offset to the log's end; None means unknown.

    Attributes:
        start_offset: None if none is stored: the group has settled nothing.
        lag: unsettled records (KIP-1226).
        log_start_offset: of the log.
        end_offset: the next offset to be written.
        stable_offset: of a group that reads committed records: the first offset of an
            open transaction, or `end_offset`. Then `ranges` end there.
        ranges: all offsets from start to end, in order, without gaps. Without a start
            offset, from the offset at which the group begins, if that is known.
        has_state: False if the state is unknown. Then `ranges` are estimated from the
            lag: all offsets from the start offset to the end of the log.
        oldest: None if all offsets are settled, or the record could not be read.
        members: ids of the members that have the partition assigned.
        last_written: when the state was last written, in milliseconds since the
            epoch; only known if it was read from records.
        first_offset: where the group begins if no start offset is stored.
        unchanged_since: when this state was first seen, in seconds since the epoch.
        search: of the oldest record, so that the next collection can continue it.
        at: when the values were read, in seconds since the epoch.
        unread: the sources that could not be read.
    """

    start_offset: int | None
    lag: int | None = None
    log_start_offset: int | None = None
    end_offset: int | None = None
    stable_offset: int | None = None
    ranges: tuple[OffsetRange, ...] = ()
    has_state: bool = True
    oldest: OldestRecord | None = None
    members: tuple[str, ...] = ()
    last_written: int | None = None
    first_offset: int | None = None
    unchanged_since: float | None = None
    search: FoundRecords | None = None
    at: float = 0.0
    unread: Mapping[Source, Unread] = field(default_factory=dict)

    def count(self, *statuses: OffsetStatus) -> int:
        """Return the number of offsets with these statuses."""
        return sum(each.count for each in self.ranges if each.status in statuses)

    @property
    def unsettled(self) -> tuple[OffsetRange, ...]:
        return tuple(each for each in self.ranges if each.status in UNSETTLED)

    @property
    def is_unsettled_known(self) -> bool:
        """True if `unsettled` has all unsettled offsets, even if estimated."""
        return self.has_state or None not in (self.start_offset, self.end_offset)

    @property
    def first_unsettled(self) -> int | None:
        """The first unsettled offset, or None."""
        return next((each.first_offset for each in self.unsettled), None)

    @property
    def window(self) -> int:
        """Number of offsets from the start to the last in the stored state.

        At least this many offsets are in flight.
        """
        if self.start_offset is None:
            return 0
        return window_of(self.start_offset, self.ranges)

    @property
    def delivery_counts(self) -> dict[int, int]:
        """Number of unsettled offsets by delivery count."""
        counts: dict[int, int] = {}
        for each in self.ranges:
            if each.status is OffsetStatus.OPEN and each.delivery_count is not None:
                count = each.delivery_count
                counts[count] = counts.get(count, 0) + each.count
        return dict(sorted(counts.items()))

    @property
    def acknowledged_state(self) -> tuple[int | None, tuple[OffsetRange, ...]]:
        """A key that changes only if offsets are settled or released."""
        # New records extend the last range, which has no delivery count.
        return self.start_offset, tuple(
            each for each in self.ranges if each.delivery_count is not None
        )

    def age(self, at: float) -> float | None:
        """Seconds since the oldest unsettled record was written, 0 if there is none.

        None if unknown, as the age of a record without a timestamp is.
        """
        if self.oldest is not None:
            age = self.oldest.age(at)
            # A producer's clock can be ahead.
            return None if age is None else max(0.0, age)
        return 0.0 if self.is_unsettled_known and not self.unsettled else None

    def read_at(self, source: Source) -> float | None:
        """Return when the values of a source were read; None if never."""
        return self.unread[source].at if source in self.unread else self.at

    @property
    def oldest_reading(self) -> float | None:
        """When the oldest values were read; None if some were never read."""
        times = [each.at for each in self.unread.values()]
        known = [at for at in times if at is not None]
        return min([self.at, *known]) if len(known) == len(times) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """A share group; None means unknown.

    Attributes:
        group: its description, with its members.
        configs: by name.
        missing_topics: by topic that members subscribe to, whether it does not exist;
            without topics that could not be described.
        at: when the values were read, in seconds since the epoch.
        unread: the sources that could not be read.
    """

    group: ShareGroup | None
    configs: Mapping[str, ConfigEntry] | None = None
    missing_topics: Mapping[str, bool] = field(default_factory=dict)
    partitions: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    at: float = 0.0
    unread: Mapping[Source, Unread] = field(default_factory=dict)

    @property
    def facts(self) -> GroupFacts | None:
        """The group's limits; None if the group could not be described."""
        return None if self.group is None else group_facts(self.group, self.configs)

    def read_at(self, source: Source) -> float | None:
        """Return when the values of a source were read; None if never."""
        return self.unread[source].at if source in self.unread else self.at


S = TypeVar("S", GroupState, PartitionState)

_OF_PARTITIONS: Final[Mapping[Source, tuple[str, ...]]] = {
    "groups": ("members",),
    "offsets": ("start_offset", "lag"),
    "logs": ("log_start_offset", "end_offset", "stable_offset"),
    "states": ("ranges", "has_state", "last_written"),
    "records": ("oldest",),
}
_OF_GROUPS: Final[Mapping[Source, tuple[str, ...]]] = {
    "groups": ("group",),
    "configs": ("configs",),
    "topics": ("missing_topics",),
}


def with_earlier_values(
    now: Mapping[str, GroupState],
    before: Mapping[str, GroupState],
    unlisted: Error | None = None,
) -> dict[str, GroupState]:
    """Return the groups of now, with earlier values where none could be read.

    Args:
        unlisted: why groups can be missing in `now`; None if they do not exist.
    """
    groups = {key: _group(one, before.get(key)) for key, one in now.items()}
    if unlisted is not None:
        lost = {key: one for key, one in before.items() if key not in now}
        groups |= {key: _lost_group(one, unlisted) for key, one in lost.items()}
    return groups


def _group(now: GroupState, before: GroupState | None) -> GroupState:
    if before is None:
        return now
    known = before.partitions
    partitions = {
        key: _partition(one, known.get(key)) for key, one in now.partitions.items()
    }
    if (unread := now.unread.get("offsets")) is not None:
        partitions = {
            key: _lost_partition(one, unread.error) for key, one in known.items()
        }
    return replace(_merged(now, before, _OF_GROUPS), partitions=partitions)


def _partition(now: PartitionState, before: PartitionState | None) -> PartitionState:
    if before is None:
        return now
    if (unread := now.unread.get("offsets")) is not None:
        return _lost_partition(before, unread.error)
    return _merged(now, before, _OF_PARTITIONS)


def _merged(now: S, before: S, fields: Mapping[Source, tuple[str, ...]]) -> S:
    """Return `now`, with the values and times of `before` for each unread source."""
    unread: Mapping[Source, Unread] = {
        source: each._replace(at=before.read_at(source))
        for source, each in now.unread.items()
    }
    values: dict[str, Any] = {
        name: getattr(before, name)
        for source, each in unread.items()
        if each.at is not None
        for name in fields.get(source, ())
    }
    return replace(now, **values, unread=unread) if unread else now


def _lost_group(before: GroupState, error: Error) -> GroupState:
    partitions = {
        key: _lost_partition(one, error) for key, one in before.partitions.items()
    }
    sources: tuple[Source, ...] = (*_OF_GROUPS, "offsets")
    unread = {each: Unread(error, before.read_at(each)) for each in sources}
    return replace(before, partitions=partitions, unread=unread)


def _lost_partition(before: PartitionState, error: Error) -> PartitionState:
    unread = {each: Unread(error, before.read_at(each)) for each in _OF_PARTITIONS}
    return replace(before, unread=unread)
