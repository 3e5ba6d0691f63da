"""Inspection of a share group, from all requests that a client can send."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sharecons._record import TopicPartition
from sharecons.admin import Result, Results, ShareGroup, ShareGroupAdmin
from sharecons.errors import BrokerError, Error, fresh
from sharecons.group_state.assemble import with_unchanged_since
from sharecons.group_state.group_facts import GroupFacts, group_facts, subscribers_of
from sharecons.group_state.group_states import GroupState, PartitionState
from sharecons.group_state.read_groups import FoundOffsets, States, read_groups
from sharecons.group_state.reading_errors import Errors
from sharecons.group_state.stored_states import (
    StateSource,
    read_states,
    read_times_of_last_write,
)
from sharecons.inspection.dead_letters import count_dead_letters
from sharecons.inspection.diagnosis.dead_letter_checks import GroupDeadLetters
from sharecons.inspection.diagnosis.findings import (
    Finding,
    findings_of,
    may_stand_still,
    missing_topic_finding,
)
from sharecons.protocol.codes import Code

__all__ = [
    "GroupInspection",
    "inspect_group",
    "inspection_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInspection:
    """The result of one inspection of a share group.

    Attributes:
        source: where the states were read; never `AUTO`.
        at: time of the inspection, in seconds since the epoch.
        partitions: each partition of the group, or the error of reading it.
        findings: of each readable partition, the worst first.
        unread: errors of reading configs and topics, which are missing in the findings.
        missing_topics: topics that members subscribe to and that do not exist.
        dead_letters: None if the configs are not readable, or if the brokers are older
            than Kafka 4.4.
    """

    group: ShareGroup
    facts: GroupFacts
    source: StateSource
    at: float
    partitions: Results[TopicPartition, PartitionState]
    findings: Mapping[TopicPartition, tuple[Finding, ...]]
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
        Error: others, as the methods of `ShareGroupAdmin`.
    """
    # First, on its own: if no broker responds, one request is enough to find out.
    group = await admin.describe_group(group_id)
    chosen = None if partitions is None else frozenset(partitions)
    names = frozenset(topics)
    errors = Errors()
    used: list[StateSource] = []

    async def states(offsets: FoundOffsets) -> States:
        keys = tuple(offsets.get(group_id, ()))
        read, read_from = await read_states(admin, group_id, keys, source)
        used.append(read_from)
        return {group_id: read}

    def choose(key: TopicPartition) -> bool:
        return key in chosen if chosen is not None else not names or key.topic in names

    read = await read_groups(
        admin,
        Results({group_id: Result(group)}),
        states,
        errors,
        before={} if before is None else {group_id: _state_of(before)},
        choose=choose,
        topics=names or {key.topic for key in chosen or ()},
        with_gaps=True,
    )
    state = read[group_id]
    if (unlisted := state.unread.get("offsets")) is not None:
        raise fresh(unlisted.error)
    for each in errors.of("records"):
        raise fresh(each)
    dead_letters = await count_dead_letters(admin, state.configs or {})
    at = time.time()
    seen = _partitions(state, group_id, chosen, names)
    is_first = before is None and source is StateSource.AUTO
    if is_first and used == [StateSource.COORDINATOR]:
        seen = await _with_times(
            admin, group_id, seen, group_facts(group, state.configs), at
        )
    found = inspection_of(
        state,
        seen,
        at=at,
        source=used[0],
        is_first=before is None,
        unread=(*errors.of("configs"), *errors.of("topics")),
    )
    return replace(found, dead_letters=dead_letters)


def inspection_of(
    state: GroupState,
    partitions: Results[TopicPartition, PartitionState] | None = None,
    *,
    at: float,
    source: StateSource = StateSource.COORDINATOR,
    is_first: bool = False,
    unread: Iterable[Error] | None = None,
) -> GroupInspection:
    """Return the inspection of a group whose state was read.

    Args:
        partitions: None means all of the group.
        at: the time of the findings, in seconds since the epoch.
        is_first: no state was read before, so how long one is unchanged is only known
            if it has the time when it was written.
        unread: errors of reading configs and topics; None: errors of the state.
    """
    assert state.group is not None, "described"
    facts = group_facts(state.group, state.configs)
    seen = _all_partitions(state) if partitions is None else partitions
    subscribers = subscribers_of(state.group)

    def unchanged_for(one: PartitionState) -> float | None:
        is_known = not is_first or one.last_written is not None
        since = one.unchanged_since
        return at - since if is_known and since is not None else None

    if unread is None:
        unread = (each.error for each in state.unread.values())
    return GroupInspection(
        group=state.group,
        facts=facts,
        source=source,
        at=at,
        partitions=seen,
        findings={
            key: findings_of(each, facts, now=at, unchanged_for=unchanged_for(each))
            for key, each in seen.found.items()
        },
        unread=tuple(unread),
        missing_topics={
            name: missing_topic_finding(subscribers.get(name, 0))
            for name, is_missing in state.missing_topics.items()
            if is_missing
        },
    )


def _state_of(inspection: GroupInspection) -> GroupState:
    return GroupState(group=inspection.group, partitions=inspection.partitions.found)


def _partitions(
    state: GroupState,
    group_id: str,
    chosen: frozenset[TopicPartition] | None,
    topics: frozenset[str],
) -> Results[TopicPartition, PartitionState]:
    """Return the chosen partitions, or the error of reading each."""
    keys = sorted(state.partitions if chosen is None else chosen)
    if chosen is None:
        unknown = topics - {key.topic for key in keys}
        keys += [TopicPartition(name, 0) for name in sorted(unknown)]

    def result(key: TopicPartition) -> Result[PartitionState]:
        one = state.partitions.get(key)
        if one is None:
            return Result(error=_unknown_partition_error(group_id, key))
        return _result(one)

    return Results({key: result(key) for key in keys})


def _all_partitions(state: GroupState) -> Results[TopicPartition, PartitionState]:
    return Results({key: _result(one) for key, one in sorted(state.partitions.items())})


def _result(one: PartitionState) -> Result[PartitionState]:
    for source in ("offsets", "states"):
        if source in one.unread:
            return Result(error=one.unread[source].error)
    return Result(one)


def _unknown_partition_error(group_id: str, key: TopicPartition) -> Error:
    code = Code.UNKNOWN_TOPIC_OR_PARTITION
    what = f"{key.topic}-{key.partition}"
    text = f"group {group_id!r} does not read {what}: no member ever subscribed to it"
    return BrokerError(text, code=code, name=code.name)


async def _with_times(
    admin: ShareGroupAdmin,
    group_id: str,
    seen: Results[TopicPartition, PartitionState],
    facts: GroupFacts,
    at: float,
) -> Results[TopicPartition, PartitionState]:
    """Add when states were written, of the partitions that can stand still."""
    keys = [key for key, each in seen.found.items() if may_stand_still(each, facts, at)]
    times = await read_times_of_last_write(admin, group_id, keys)

    def result(
        key: TopicPartition, one: Result[PartitionState]
    ) -> Result[PartitionState]:
        if key not in times:
            return one
        partition = replace(one.value, last_written=times[key])
        return Result(with_unchanged_since(partition, None, at))

    return Results({key: result(key, one) for key, one in seen.items()})
