"""Where share groups stand: start offsets and lag."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from sharecons._record import TopicPartition
from sharecons.admin.groups import describe_share_groups
from sharecons.admin.missing import missing_partitions
from sharecons.admin.topics import list_offsets
from sharecons.net.admin_executor import AdminExecutor
from sharecons.protocol.admin.broker_errors import is_code
from sharecons.protocol.admin.fanout import outcomes, worst_of
from sharecons.protocol.admin.models import GroupOffset, LogOffset, OffsetSpec
from sharecons.protocol.admin.requests import (
    LAG_UNTOLD,
    DescribeShareOffsets,
    Reply,
)
from sharecons.protocol.admin.results import Outcome, Results
from sharecons.protocol.codes import Code

__all__ = ["list_share_group_offsets"]

Told = Mapping[TopicPartition, Reply[GroupOffset]]
GroupOffsets = Results[TopicPartition, GroupOffset]

DOING: Final = "list the offset of"


async def list_share_group_offsets(
    executor: AdminExecutor,
    group_ids: Iterable[str],
    partitions: tuple[TopicPartition, ...] | None,
) -> Results[str, GroupOffsets]:
    missing = await missing_partitions(executor, partitions or (), DOING)
    there = partitions and tuple(key for key in partitions if key not in missing)

    async def ask(node_id: int, keys: tuple[str, ...]) -> Mapping[str, Reply[Told]]:
        request = DescribeShareOffsets(groups=dict.fromkeys(keys, there))
        answer: Mapping[str, Reply[Told]] = await executor.ask(node_id, request)
        return {key: _whole(reply) for key, reply in answer.items()}

    listed = await executor.of_groups(group_ids, "list the offsets of", ask)
    named = {key: _named(key, one) for key, one in listed.items()}
    lagging = await _with_lag(executor, await _without_strangers(executor, named))
    if partitions is None:
        return lagging
    wanted = partitions
    return lagging.map(
        lambda found: Results(
            {
                key: Outcome(error=missing[key]) if key in missing else found[key]
                for key in wanted
            }
        )
    )


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
    executor: AdminExecutor, listed: Mapping[str, Outcome[GroupOffsets]]
) -> dict[str, Outcome[GroupOffsets]]:
    """Find groups that are not there: of those, brokers say nothing, without error."""
    silent = [
        key
        for key, one in listed.items()
        if one.ok and all(_is_nothing(offset) for offset in one.value.values())
    ]
    if not silent:
        return dict(listed)
    described = await describe_share_groups(executor, silent)
    return {
        key: Outcome(error=described[key].error)
        if key in described and is_code(described[key].error, Code.GROUP_ID_NOT_FOUND)
        else one
        for key, one in listed.items()
    }


def _is_nothing(offset: Outcome[GroupOffset]) -> bool:
    return offset.ok and offset.value.start_offset is None


async def _with_lag(
    executor: AdminExecutor, listed: Mapping[str, Outcome[GroupOffsets]]
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
    ends = (await list_offsets(executor, specs, False)).found

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
