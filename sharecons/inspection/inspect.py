"""Inspection of a share group, from all requests that a client can send."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sharecons._record import TopicPartition
from sharecons.admin import (
    ConfigEntry,
    GroupOffset,
    LogOffset,
    OffsetSpec,
    Result,
    Results,
    ShareGroup,
    ShareGroupAdmin,
)
from sharecons.errors import BrokerError, Error
from sharecons.inspection.dead_letters import count_dead_letters
from sharecons.inspection.diagnosis.dead_letter_checks import GroupDeadLetters
from sharecons.inspection.diagnosis.findings import (
    Finding,
    findings_of,
    may_stand_still,
    missing_topic_finding,
)
from sharecons.inspection.diagnosis.group_facts import (
    GroupFacts,
    acknowledged_state,
    assigned_members,
    first_offset_of,
    group_facts,
)
from sharecons.inspection.diagnosis.offset_states import (
    PartitionInspection,
    offset_ranges_of,
    without_records,
)
from sharecons.inspection.gather import gather, log_bounds
from sharecons.inspection.missing_topics import find_missing_topics, subscribers_of
from sharecons.inspection.oldest import find_records
from sharecons.inspection.states import (
    StateSource,
    StoredState,
    read_states,
    read_times_of_last_write,
)
from sharecons.protocol.codes import Code

__all__ = [
    "GroupInspection",
    "inspect_group",
]

Ends = tuple[int | None, int | None]
"""The start and end offsets of a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInspection:
    """The result of one inspection of a share group.

    Attributes:
        source: where the states were read; never `AUTO`.
        at: time of the inspection, in seconds since the epoch.
        partitions: each partition of the group, or the error of reading it.
        findings: of each readable partition, the worst first.
        since: of each readable partition: the time of the first of consecutive
            inspections that found its state unchanged, in seconds since the epoch.
        unread: errors of reading configs and topics, which are missing in the findings.
        missing_topics: topics that members subscribe to and that do not exist.
        dead_letters: None if the configs are not readable, or if the brokers are older
            than Kafka 4.4.
    """

    group: ShareGroup
    facts: GroupFacts
    source: StateSource
    at: float
    partitions: Results[TopicPartition, PartitionInspection]
    findings: Mapping[TopicPartition, tuple[Finding, ...]]
    since: Mapping[TopicPartition, float]
    unread: tuple[Error, ...] = ()
    dead_letters: GroupDeadLetters | None = None
    missing_topics: Mapping[str, Finding] = field(default_factory=dict)


async def inspect_group(
    admin: ShareGroupAdmin,
    group_id: str,
    *,
    partitions: Iterable[TopicPartition] | None = None,
    topics: Iterable[str] = (),
    source: StateSource = StateSource.AUTO,
    before: GroupInspection | None = None,
) -> GroupInspection:
    """Inspect a share group, without side effects on it.

    The requests of one inspection are not simultaneous: records that are settled in
    between show in some results and not in others.

    Args:
        partitions: these only; None means all of the group.
        topics: all partitions that the group has of these topics only.
        before: the previous inspection, to find out for how long nothing has changed.

    Raises:
        BrokerError: the group does not exist or is not a share group.
        AuthorizationError: states can be read from neither source.
        Others as the methods of `ShareGroupAdmin`.
    """
    # First, on its own: if no broker responds, one request is enough to find out.
    group = await admin.describe_group(group_id)
    listed, configs = await gather(
        admin.list_share_group_offsets(group_id), admin.describe_group_configs(group_id)
    )
    known = listed.value[group_id].value
    topics = set(topics)
    partitions = None if partitions is None else set(partitions)
    wanted = _wanted(group_id, known, partitions, topics)
    entries, unread = _configs(configs, group_id)
    facts = group_facts(group, entries)
    states, ends, used = await _states_and_ends(
        admin, group_id, tuple(wanted.found), source
    )
    stable = await _stable_offsets(admin, ends, facts)
    firsts = {
        key: first_offset_of(facts, ends[key][0], _earlier_end(before, key, group))
        for key in states.found
    }
    ranges = {
        key: offset_ranges_of(
            each.state, ends[key][0], stable.get(key, ends[key][1]), firsts[key]
        )
        for key, each in states.found.items()
    }
    records = await find_records(admin, ranges, committed=stable, with_gaps=True)
    dead_letters = await count_dead_letters(admin, entries)
    missing, undescribed = await _missing_topics(
        admin, group, {*topics, *(key.topic for key in partitions or ())}
    )
    at = time.time()

    def inside(key: TopicPartition) -> Result[PartitionInspection]:
        if (error := wanted[key].error or states[key].error) is not None:
            return Result(error=error)
        read = states[key].value
        log_start, end = ends[key]
        found = records.get(key)
        return Result(
            PartitionInspection(
                start_offset=read.state.start_offset,
                log_start_offset=log_start,
                end_offset=end,
                ranges=without_records(
                    ranges[key], () if found is None else found.without_record
                ),
                oldest=None if found is None else found.oldest,
                members=assigned_members(group, key),
                first_offset=firsts[key],
                stable_offset=stable.get(key),
                last_written=read.last_written,
            )
        )

    seen = Results({key: inside(key) for key in wanted})
    if (
        source is StateSource.AUTO
        and used is StateSource.COORDINATOR
        and before is None
    ):
        seen = await _with_times(admin, group_id, seen, facts, at)
    since = {
        key: _unchanged_since(key, each, at, before) for key, each in seen.found.items()
    }

    def unchanged_for(key: TopicPartition, each: PartitionInspection) -> float | None:
        is_known = before is not None or each.last_written is not None
        return at - since[key] if is_known else None

    return GroupInspection(
        group=group,
        facts=facts,
        source=used,
        at=at,
        partitions=seen,
        findings={
            key: findings_of(
                each, facts, now=at, unchanged_for=unchanged_for(key, each)
            )
            for key, each in seen.found.items()
        },
        since=since,
        unread=(*unread, *undescribed),
        dead_letters=dead_letters,
        missing_topics=missing,
    )


async def _with_times(
    admin: ShareGroupAdmin,
    group_id: str,
    seen: Results[TopicPartition, PartitionInspection],
    facts: GroupFacts,
    at: float,
) -> Results[TopicPartition, PartitionInspection]:
    """Add when states were written, of the partitions that can stand still."""
    keys = [key for key, each in seen.found.items() if may_stand_still(each, facts, at)]
    times = await read_times_of_last_write(admin, group_id, keys)
    return Results(
        {
            key: Result(replace(each.value, last_written=times[key]))
            if key in times
            else each
            for key, each in seen.items()
        }
    )


async def _missing_topics(
    admin: ShareGroupAdmin, group: ShareGroup, chosen: set[str]
) -> tuple[dict[str, Finding], tuple[Error, ...]]:
    """Return findings by topic, of the chosen topics or of all, and errors."""
    subscribers = subscribers_of(group)
    names = [name for name in subscribers if not chosen or name in chosen]
    missing, errors = await find_missing_topics(admin, names)
    findings = {
        name: missing_topic_finding(subscribers[name])
        for name, is_missing in missing.items()
        if is_missing
    }
    return findings, errors


def _wanted(
    group_id: str,
    known: Results[TopicPartition, GroupOffset],
    partitions: Iterable[TopicPartition] | None,
    topics: set[str],
) -> Results[TopicPartition, None]:
    if partitions is None:
        of_topics = {key.topic for key in known}
        unknown = [TopicPartition(name, 0) for name in sorted(topics - of_topics)]
        keys = [key for key in sorted(known) if not topics or key.topic in topics]
        keys += unknown
    else:
        keys = sorted(set(partitions))
    return Results(
        {
            key: Result(error=_unknown_partition_error(group_id, key, known))
            for key in keys
        }
    )


def _unknown_partition_error(
    group_id: str, key: TopicPartition, known: Results[TopicPartition, GroupOffset]
) -> Error | None:
    if key in known:
        return known[key].error
    code = Code.UNKNOWN_TOPIC_OR_PARTITION
    what = f"{key.topic}-{key.partition}"
    text = f"group {group_id!r} does not read {what}: no member ever subscribed to it"
    return BrokerError(text, code=code, name=code.name)


async def _states_and_ends(
    admin: ShareGroupAdmin,
    group_id: str,
    keys: tuple[TopicPartition, ...],
    source: StateSource,
) -> tuple[
    Results[TopicPartition, StoredState], dict[TopicPartition, Ends], StateSource
]:
    read, logs = await gather(
        read_states(admin, group_id, keys, source), log_bounds(admin, keys)
    )
    states, source = read.value
    starts, ends = logs.value
    return (
        states,
        {key: (_offset(starts, key), _offset(ends, key)) for key in keys},
        source,
    )


async def _stable_offsets(
    admin: ShareGroupAdmin, ends: Mapping[TopicPartition, Ends], facts: GroupFacts
) -> dict[TopicPartition, int]:
    """Return the last stable offsets if the group reads committed records."""
    if not facts.read_committed:
        return {}
    found = await admin.list_offsets(
        tuple(ends), OffsetSpec.LATEST, read_committed=True
    )
    return {
        key: one.offset for key, one in found.found.items() if one.offset is not None
    }


def _offset(
    found: Results[TopicPartition, LogOffset], key: TopicPartition
) -> int | None:
    return found[key].value.offset if found[key].ok else None


def _configs(
    configs: Result[Results[str, Mapping[str, ConfigEntry]]], group_id: str
) -> tuple[Mapping[str, ConfigEntry], tuple[Error, ...]]:
    """Return the group's configs; without them some findings are not made."""
    if configs.error is not None:
        return {}, (configs.error,)
    entries = configs.value[group_id]
    return ({}, (entries.error,)) if entries.error is not None else (entries.value, ())


def _earlier_end(
    before: GroupInspection | None, key: TopicPartition, group: ShareGroup
) -> int | None:
    """Return the log's end at the first inspection, if a member is still the same."""
    earlier = None if before is None else before.partitions.get(key)
    if earlier is None or not earlier.ok:
        return None
    seen = earlier.value
    if not set(seen.members).intersection(assigned_members(group, key)):
        return None
    return seen.end_offset if seen.first_offset is None else seen.first_offset


def _unchanged_since(
    key: TopicPartition,
    partition: PartitionInspection,
    at: float,
    before: GroupInspection | None,
) -> float:
    if partition.last_written is not None:
        return partition.last_written / 1000
    earlier = None if before is None else before.partitions.get(key)
    if before is None or earlier is None or not earlier.ok:
        return at
    same = acknowledged_state(earlier.value) == acknowledged_state(partition)
    return before.since[key] if same else at
