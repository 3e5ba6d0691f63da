"""The snapshot of one group, from what the brokers returned."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.admin import (
    ConfigEntry,
    GroupOffset,
    ShareGroup,
    SharePartitionState,
)
from sharecons.exporter.snapshot import ExportedGroup, ExportedPartition
from sharecons.inspection.diagnosis.group_facts import (
    assigned_members,
    first_offset_of,
    group_facts,
    reads_committed,
)
from sharecons.inspection.diagnosis.offset_states import UNSETTLED, offset_ranges_of
from sharecons.inspection.missing_topics import subscribers_of

__all__ = ["Logs", "group_snapshot"]

NO_STATE: Final = SharePartitionState(start_offset=None, state_epoch=0, batches=())


class Logs(NamedTuple):
    """The start and end offsets of logs, and by topic whether it is missing.

    `stable` has the last stable offsets, for groups that read committed records.
    """

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    stable: Mapping[TopicPartition, int]
    missing: Mapping[str, bool]


def group_snapshot(
    group: ShareGroup | None,
    offsets: Mapping[TopicPartition, GroupOffset],
    states: Mapping[TopicPartition, SharePartitionState],
    logs: Logs,
    configs: Mapping[str, ConfigEntry],
    before: ExportedGroup | None,
) -> ExportedGroup:
    """Return the snapshot; `before` is the last collection's snapshot."""
    names = () if group is None else subscribers_of(group)
    known = before.partitions if before is not None else {}
    committed = reads_committed(configs)
    readable = {**logs.ends, **logs.stable} if committed else logs.ends
    return ExportedGroup(
        missing_topics={n: logs.missing[n] for n in names if n in logs.missing},
        state=None if group is None else group.state,
        members=None if group is None else len(group.members),
        partitions={
            key: _settled_nothing(
                group, configs, key, logs, readable.get(key), known.get(key)
            )
            if one.start_offset is None
            else ExportedPartition(
                start_offset=one.start_offset,
                members=() if group is None else assigned_members(group, key),
                end_offset=logs.ends.get(key),
                lag=one.lag,
                ranges=offset_ranges_of(
                    states[key], logs.starts.get(key), readable.get(key)
                )
                if key in states
                else None,
            )
            for key, one in offsets.items()
        },
    )


def _settled_nothing(
    group: ShareGroup | None,
    configs: Mapping[str, ConfigEntry],
    key: TopicPartition,
    logs: Logs,
    readable_end: int | None,
    before: ExportedPartition | None,
) -> ExportedPartition:
    """Return a partition without a stored start offset.

    Its lag is known if it is known where the group begins.
    """
    log_start, end = logs.starts.get(key), logs.ends.get(key)
    first: int | None = None
    members: tuple[str, ...] = ()
    if group is not None:
        members = assigned_members(group, key)
        earlier = None
        if before is not None and set(before.members).intersection(members):
            earlier = before.first_offset
            if earlier is None:
                earlier = before.end_offset
        first = first_offset_of(group_facts(group, configs), log_start, earlier)
    ranges = offset_ranges_of(NO_STATE, log_start, readable_end, first)
    is_known = first is not None and end is not None
    return ExportedPartition(
        start_offset=None,
        first_offset=first,
        members=members,
        end_offset=end,
        lag=sum(each.count for each in ranges if each.status in UNSETTLED)
        if is_known
        else None,
        ranges=ranges if is_known else None,
    )
