"""Where share groups stand: start offsets and lag, read, set and forgotten."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from sharecons.admin.groups import describe_groups
from sharecons.admin.logs import log_offsets
from sharecons.errors import ConfigurationError
from sharecons.net.questions import Questions
from sharecons.protocol.admin_values import GroupOffset, LogOffset, OffsetSpec
from sharecons.protocol.codes import Code
from sharecons.protocol.errands import outcomes, parts, place, worst_of
from sharecons.protocol.outcomes import Outcome, Results
from sharecons.protocol.questions import (
    LAG_UNTOLD,
    AlterShareOffsets,
    DeleteShareOffsets,
    DescribeShareOffsets,
    Reply,
)
from sharecons.protocol.refusals import is_code, refusal
from sharecons.untyped import TopicPartition

__all__ = ["alter_offsets", "check_offsets", "delete_offsets", "list_offsets"]

Told = Mapping[TopicPartition, Reply[GroupOffset]]
GroupOffsets = Results[TopicPartition, GroupOffset]
Missing = Outcome[GroupOffset]

DOING: Final = "list the offset of"


async def list_offsets(
    questions: Questions,
    group_ids: Iterable[str],
    partitions: tuple[TopicPartition, ...] | None,
) -> Results[str, GroupOffsets]:
    there, missing = await _existing(questions, partitions)

    async def ask(node_id: int, keys: tuple[str, ...]) -> Mapping[str, Reply[Told]]:
        request = DescribeShareOffsets(groups=dict.fromkeys(keys, there))
        answer: Mapping[str, Reply[Told]] = await questions.ask(node_id, request)
        return {key: _whole(reply) for key, reply in answer.items()}

    listed = await questions.of_groups(group_ids, "list the offsets of", ask)
    named = {key: _named(key, one) for key, one in listed.items()}
    lagging = await _with_lag(questions, await _without_strangers(questions, named))
    if partitions is None:
        return lagging
    wanted = partitions
    return lagging.map(
        lambda found: Results({key: missing.get(key) or found[key] for key in wanted})
    )


async def _existing(
    questions: Questions, partitions: tuple[TopicPartition, ...] | None
) -> tuple[tuple[TopicPartition, ...] | None, dict[TopicPartition, Missing]]:
    """Sort out what is not there: asked for a partition that its topic does not have,
    Kafka 4.3.0 never answers."""
    if not partitions:
        return partitions, {}
    names = {partition.topic for partition in partitions}
    answer = await questions.brokers.ask_topics(names, questions.deadline)
    placed = {key: place(answer.topics, key) for key in partitions}
    missing: dict[TopicPartition, Missing] = {
        key: Outcome(error=refusal(DOING, f"{key.topic}-{key.partition}", code, why))
        for key, (code, why, _) in placed.items()
        if code == Code.UNKNOWN_TOPIC_OR_PARTITION
    }
    return tuple(key for key in partitions if key not in missing), missing


def _whole(reply: Reply[Told]) -> Reply[Told]:
    if reply.code != Code.NONE or reply.value is None:
        return reply._replace(value=None)
    return worst_of(reply.value)


def _named(group_id: str, one: Outcome[Told]) -> Outcome[GroupOffsets]:
    if one.error is not None:
        return Outcome(error=one.error)
    return Outcome(
        outcomes(
            one.value,
            DOING,
            lambda key: f"{key.topic}-{key.partition} in group {group_id!r}",
        )
    )


async def _without_strangers(
    questions: Questions, listed: Mapping[str, Outcome[GroupOffsets]]
) -> dict[str, Outcome[GroupOffsets]]:
    """Find groups that are not there: of those, brokers say nothing, without error."""
    silent = [
        key
        for key, one in listed.items()
        if one.ok and all(_is_nothing(offset) for offset in one.value.values())
    ]
    if not silent:
        return dict(listed)
    described = await describe_groups(questions, silent)
    return {
        key: Outcome(error=described[key].error)
        if key in described and is_code(described[key].error, Code.GROUP_ID_NOT_FOUND)
        else one
        for key, one in listed.items()
    }


def _is_nothing(offset: Outcome[GroupOffset]) -> bool:
    return offset.ok and offset.value.start_offset is None


async def _with_lag(
    questions: Questions, listed: Mapping[str, Outcome[GroupOffsets]]
) -> Results[str, GroupOffsets]:
    """Reckon the lag where the broker has none to tell (Kafka 4.1).

    It is what lies between start offset and end, also what is acknowledged of it.
    """
    untold = {
        partition
        for one in listed.values()
        if one.ok
        for partition, offset in one.value.found.items()
        if offset.lag == LAG_UNTOLD
    }
    if not untold:
        return Results(listed)
    specs = dict.fromkeys(sorted(untold), OffsetSpec.LATEST)
    ends = (await log_offsets(questions, specs, False)).found

    def reckoned(offsets: GroupOffsets) -> GroupOffsets:
        return Results(
            {
                partition: Outcome(_reckoned(offset.value, ends.get(partition)))
                if offset.ok
                else offset
                for partition, offset in offsets.items()
            }
        )

    return Results(listed).map(reckoned)


def _reckoned(offset: GroupOffset, end: LogOffset | None) -> GroupOffset:
    if offset.lag != LAG_UNTOLD:
        return offset
    if end is None or end.offset is None or offset.start_offset is None:
        return replace(offset, lag=None)
    return replace(offset, lag=max(0, end.offset - offset.start_offset))


async def alter_offsets(
    questions: Questions,
    group_id: str,
    wanted: Mapping[TopicPartition, int | OffsetSpec],
) -> Results[TopicPartition, int]:
    found = await _looked_up(questions, wanted)
    offsets = found.found
    if not offsets:
        return found
    request = AlterShareOffsets(group_id=group_id, offsets=offsets)

    async def ask(
        node_id: int, keys: tuple[str, ...]
    ) -> Mapping[str, Reply[Mapping[TopicPartition, Reply[None]]]]:
        reply = await questions.ask(node_id, request)
        if reply.code == Code.NONE:
            reply = worst_of(reply.value)
        return {group_id: reply}

    doing = "set the offsets of"
    answered = await questions.of_groups([group_id], doing, ask)
    altered = parts(
        answered[group_id],
        offsets,
        "set the offset of",
        lambda key: f"{key.topic}-{key.partition} in group {group_id!r}",
    )
    return Results(
        {
            key: one if not one.ok else Outcome(offsets[key], altered[key].error)
            for key, one in found.items()
        }
    )


async def _looked_up(
    questions: Questions, wanted: Mapping[TopicPartition, int | OffsetSpec]
) -> Results[TopicPartition, int]:
    specs = {key: spec for key, spec in wanted.items() if isinstance(spec, OffsetSpec)}
    looked_up = await log_offsets(questions, specs, False)
    # There is no record so late: what comes next is meant.
    late = [key for key, found in looked_up.found.items() if found.offset is None]
    ends = await log_offsets(questions, dict.fromkeys(late, OffsetSpec.LATEST), False)

    def offset_of(key: TopicPartition, spec: int | OffsetSpec) -> Outcome[int]:
        if not isinstance(spec, OffsetSpec):
            return Outcome(spec)
        one = ends.get(key, looked_up[key])
        return Outcome(None if one.error else one.value.offset, one.error)

    return Results({key: offset_of(key, spec) for key, spec in wanted.items()})


async def delete_offsets(
    questions: Questions, group_id: str, topics: tuple[str, ...]
) -> Results[str, None]:
    request = DeleteShareOffsets(group_id=group_id, topics=topics)

    async def ask(
        node_id: int, keys: tuple[str, ...]
    ) -> Mapping[str, Reply[Mapping[str, Reply[None]]]]:
        reply = await questions.ask(node_id, request)
        if reply.code == Code.NONE:
            reply = worst_of(reply.value)
        return {group_id: reply}

    doing = "delete offsets of"
    answered = await questions.of_groups([group_id], doing, ask)
    return parts(
        answered[group_id],
        topics,
        "delete the offsets of",
        lambda topic: f"topic {topic!r} in group {group_id!r}",
    )


def check_offsets(wanted: Mapping[TopicPartition, int | OffsetSpec]) -> None:
    """See that each is an offset.

    Raises:
        ConfigurationError: one is none.
    """
    for (topic, partition), offset in wanted.items():
        if isinstance(offset, OffsetSpec):
            continue
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
            raise ConfigurationError(
                f"{topic}-{partition}: an offset is a number from 0 on, not {offset!r}"
            )
