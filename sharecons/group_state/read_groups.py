"""Reads the state of any number of groups with few requests.

Descriptions, offsets, configs and log ends are requested for all groups together: one
request to each coordinator or leader. States take requests per group. The oldest
records of all groups are read together, if they are others than before.
"""

import time
from collections.abc import Awaitable, Callable, Collection, Mapping

from sharecons._record import TopicPartition
from sharecons.admin import (
    GroupOffset,
    LogOffset,
    OffsetSpec,
    Results,
    ShareGroup,
    ShareGroupAdmin,
)
from sharecons.group_state.assemble import Readings, group_state_of
from sharecons.group_state.gather import failed, gather
from sharecons.group_state.group_facts import reads_committed, subscribers_of
from sharecons.group_state.group_states import GroupState
from sharecons.group_state.missing_topics import find_missing_topics
from sharecons.group_state.oldest_records import with_records
from sharecons.group_state.reading_errors import Errors
from sharecons.group_state.stored_states import StoredState

__all__ = ["FoundOffsets", "ReadStates", "States", "read_groups"]

LogOffsets = Results[TopicPartition, LogOffset]
States = Mapping[str, Results[TopicPartition, StoredState]]
FoundOffsets = Mapping[str, Mapping[TopicPartition, GroupOffset]]
ReadStates = Callable[[FoundOffsets], Awaitable[States]]
"""Reads the states of these partitions, by group."""


async def read_groups(
    admin: ShareGroupAdmin,
    groups: Results[str, ShareGroup],
    read_states: ReadStates,
    errors: Errors,
    *,
    before: Mapping[str, GroupState],
    choose: Callable[[TopicPartition], bool] = lambda key: True,
    topics: Collection[str] = (),
    with_gaps: bool = False,
) -> dict[str, GroupState]:
    """Read the state of groups, without side effects on them.

    The requests are not simultaneous: records that are settled in between show in some
    values and not in others.

    Args:
        groups: their descriptions.
        read_states: reads the stored states.
        errors: errors are added here.
        before: the groups of an earlier collection.
        choose: whether a partition is read.
        topics: that members subscribe to, to check whether they exist; none means all.
        with_gaps: search offsets between stored states for records, too: in groups
            that read committed records, they are locked, or aborted.

    Raises:
        Others as the methods of `ShareGroupAdmin`, if no broker responds.
    """
    began, ids = time.time(), tuple(groups)
    listed, configs = await gather(
        admin.list_share_group_offsets(*ids), admin.describe_group_configs(*ids)
    )
    offsets = errors.added("offsets", listed.value).map(
        lambda found: Results({key: one for key, one in found.items() if choose(key)})
    )
    for each in offsets.found.values():
        errors.add("offsets", each.errors.values())
    found = {group_id: each.found for group_id, each in offsets.found.items()}
    keys = sorted({key for each in found.values() for key in each})
    states, logs = await gather(read_states(found), _log_offsets(admin, keys))
    entries = failed(ids, configs.error) if configs.error else configs.value
    errors.added("configs", entries)
    committed = [key for key in ids if reads_committed(entries.found.get(key, {}))]
    stable = await _stable_offsets(
        admin, {key for each in committed for key in found.get(each, ())}
    )
    for logged in (*logs.value, stable):
        errors.added("logs", logged)
    missing = await _missing_topics(admin, groups.found, topics, errors)
    readings = Readings(
        groups=groups,
        offsets=offsets,
        configs=entries,
        states=states.value,
        starts=logs.value[0],
        ends=logs.value[1],
        stable=stable,
        missing_topics=missing,
    )
    read = {key: group_state_of(key, readings, before.get(key), began) for key in ids}
    return await with_records(admin, read, before, errors, with_gaps=with_gaps)


async def _log_offsets(
    admin: ShareGroupAdmin, keys: Collection[TopicPartition]
) -> tuple[LogOffsets, LogOffsets]:
    """Return the start and end offsets of logs; one can be known without the other."""
    starts, ends = await gather(
        admin.list_offsets(tuple(keys), OffsetSpec.EARLIEST),
        admin.list_offsets(tuple(keys), OffsetSpec.LATEST),
    )
    return starts.value, ends.value


async def _stable_offsets(
    admin: ShareGroupAdmin, keys: Collection[TopicPartition]
) -> LogOffsets:
    """Return the last stable offsets, for groups that read committed records."""
    if not keys:
        return Results({})
    return await admin.list_offsets(tuple(keys), OffsetSpec.LATEST, read_committed=True)


async def _missing_topics(
    admin: ShareGroupAdmin,
    groups: Mapping[str, ShareGroup],
    topics: Collection[str],
    errors: Errors,
) -> Mapping[str, bool]:
    names = {name for group in groups.values() for name in subscribers_of(group)}
    if topics:
        names &= set(topics)
    missing, others = await find_missing_topics(admin, names)
    errors.add("topics", others)
    return missing
