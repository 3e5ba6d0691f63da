"""Makes the state of a group from what the brokers returned."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sharecons._record import TopicPartition
from sharecons.group_state.group_facts import (
    assigned_members,
    first_offset_of,
    reads_committed,
    subscribers_of,
)
from sharecons.group_state.group_states import (
    GroupState,
    PartitionState,
    Source,
    Unread,
)
from sharecons.group_state.offset_states import (
    UNSETTLED,
    OffsetRange,
    OffsetStatus,
    offset_ranges_of,
    without_records,
)
from sharecons.group_state.record_search import FoundRecords
from sharecons.protocol.admin.models import (
    ConfigEntry,
    GroupOffset,
    LogOffset,
    ShareGroup,
    SharePartitionState,
)
from sharecons.protocol.admin.results import Result, Results

__all__ = [
    "Readings",
    "StoredState",
    "group_state_of",
    "with_found",
    "with_unchanged_since",
]

NO_STATE: Final = SharePartitionState(start_offset=None, state_epoch=0, batches=())

Offsets = Results[TopicPartition, LogOffset]
Unreads = Mapping[Source, Unread]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """A state; `last_written` as in `PartitionState`."""

    state: SharePartitionState
    last_written: int | None = None


def _no_offsets() -> Offsets:
    return Results({})


@dataclass(slots=True, kw_only=True)
class Readings:
    """The responses of brokers about some groups.

    `stable` has the last stable offsets, for groups that read committed records.
    """

    groups: Results[str, ShareGroup]
    offsets: Results[str, Results[TopicPartition, GroupOffset]]
    configs: Results[str, Mapping[str, ConfigEntry]]
    states: Mapping[str, Results[TopicPartition, StoredState]] = field(
        default_factory=dict
    )
    starts: Offsets = field(default_factory=_no_offsets)
    ends: Offsets = field(default_factory=_no_offsets)
    stable: Offsets = field(default_factory=_no_offsets)
    missing_topics: Mapping[str, bool] = field(default_factory=dict)


def group_state_of(
    group_id: str, read: Readings, before: GroupState | None, at: float
) -> GroupState:
    """Return the state of a group, without its records.

    Args:
        before: of an earlier collection, if any: it shows where a group begins that has
            settled nothing.
        at: the present time, in seconds since the epoch.
    """
    described, configs = read.groups[group_id], read.configs[group_id]
    listed = read.offsets[group_id]
    unread: Unreads = {
        **_unread("groups", described),
        **_unread("configs", configs),
        **_unread("offsets", listed),
    }
    missing = read.missing_topics
    group = described.value if described.ok else None
    names = () if group is None else sorted(subscribers_of(group))
    state = GroupState(
        group=group,
        configs=configs.value if configs.ok else None,
        missing_topics={name: missing[name] for name in names if name in missing},
        at=at,
        unread=unread,
    )
    if not listed.ok:
        return state
    known = {} if before is None else before.partitions
    stored: Mapping[TopicPartition, Result[StoredState]]
    stored = read.states.get(group_id, {})
    assigned = {} if group is None else assigned_members(group)
    partitions = {
        key: _partition_of(
            key,
            state,
            read,
            one,
            stored.get(key),
            known.get(key),
            members=assigned.get(key, ()),
        )
        for key, one in listed.value.items()
    }
    return replace(state, partitions=partitions)


def _partition_of(
    key: TopicPartition,
    group: GroupState,
    read: Readings,
    listed: Result[GroupOffset],
    stored: Result[StoredState] | None,
    before: PartitionState | None,
    *,
    members: tuple[str, ...],
) -> PartitionState:
    if listed.error is not None:
        return PartitionState(
            start_offset=None,
            has_state=False,
            at=group.at,
            unread={"offsets": Unread(listed.error)},
        )
    state = stored.value if stored is not None and stored.ok else None
    logs = (read.starts, read.ends, read.stable if _is_committed(group) else {})
    log_start, end, stable = (_offset(each, key) for each in logs)
    partition = PartitionState(
        start_offset=listed.value.start_offset
        if state is None
        else state.state.start_offset,
        lag=listed.value.lag,
        log_start_offset=log_start,
        end_offset=end,
        stable_offset=stable,
        members=members,
        last_written=None if state is None else state.last_written,
        at=group.at,
        unread={
            **_unread("logs", *(each.get(key) for each in logs)),
            **_unread("states", stored),
        },
    )
    if partition.start_offset is None:
        return _settled_nothing(partition, group, before)
    if state is None:
        return replace(partition, ranges=_estimated(partition), has_state=False)
    return replace(partition, ranges=_ranges(partition, state.state))


def _is_committed(group: GroupState) -> bool:
    return reads_committed(group.configs or {})


def _offset(
    found: Mapping[TopicPartition, Result[LogOffset]], key: TopicPartition
) -> int | None:
    one = found.get(key)
    return one.value.offset if one is not None and one.ok else None


def _unread(source: Source, *results: Result[Any] | None) -> Unreads:
    """Return the first error as an entry of `unread`."""
    for each in results:
        if each is not None and each.error is not None:
            return {source: Unread(each.error)}
    return {}


def _settled_nothing(
    partition: PartitionState, group: GroupState, before: PartitionState | None
) -> PartitionState:
    """Complete a partition without a stored start offset.

    Its lag is known if it is known where the group begins.
    """
    earlier = None
    if before is not None and set(before.members).intersection(partition.members):
        earlier = before.first_offset
        if earlier is None:
            earlier = before.end_offset
    facts, log_start = group.facts, partition.log_start_offset
    first = None if facts is None else first_offset_of(facts, log_start, earlier)
    partition = replace(partition, first_offset=first)
    partition = replace(partition, ranges=_ranges(partition, NO_STATE))
    is_known = first is not None and partition.end_offset is not None
    lag = sum(each.count for each in partition.unsettled) if is_known else None
    return replace(partition, lag=lag, has_state=is_known)


def _ranges(
    partition: PartitionState, state: SharePartitionState
) -> tuple[OffsetRange, ...]:
    end = partition.stable_offset
    if end is None:
        end = partition.end_offset
    return offset_ranges_of(
        state, partition.log_start_offset, end, partition.first_offset
    )


def _estimated(partition: PartitionState) -> tuple[OffsetRange, ...]:
    """Return the ranges without a state: which offsets were delivered is unknown."""
    first, end = partition.start_offset, partition.end_offset
    if first is None or end is None or partition.lag == 0 or end <= first:
        return ()
    above = OffsetStatus.ABOVE
    return (OffsetRange(first_offset=first, last_offset=end - 1, status=above),)


def with_found(partition: PartitionState, found: FoundRecords | None) -> PartitionState:
    """Return a partition with its oldest record, and offsets without a record."""
    if found is None:
        return partition
    ranges = without_records(partition.ranges, found.without_record)
    left = sum(each.count for each in ranges if each.status in UNSETTLED)
    lag = partition.lag
    if lag is not None and (partition.has_state or not left):
        # Without the state, the lag is all that is known, unless nothing is left.
        lag = min(lag, left)
    return replace(partition, oldest=found.oldest, ranges=ranges, lag=lag, search=found)


def with_unchanged_since(
    partition: PartitionState, before: PartitionState | None, at: float
) -> PartitionState:
    """Return a partition with the time since which its state is unchanged."""
    since = at
    if partition.last_written is not None:
        since = partition.last_written / 1000
    elif before is not None and before.unchanged_since is not None:
        same = before.start_offset == partition.start_offset
        if partition.has_state:
            same = before.acknowledged_state == partition.acknowledged_state
        since = before.unchanged_since if same else at
    return replace(partition, unchanged_since=since)
