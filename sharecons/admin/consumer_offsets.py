"""Committed offsets of consumer groups: listing, and setting without a member."""

from collections.abc import Iterable, Mapping

from sharecons._record import TopicPartition
from sharecons.admin.missing import missing_partitions
from sharecons.net.admin_executor import AdminExecutor
from sharecons.protocol.admin.fanout import merge_replies, part_results, results_of
from sharecons.protocol.admin.models import CommittedOffset
from sharecons.protocol.admin.requests import (
    AlterConsumerGroupOffsets,
    ListConsumerGroupOffsets,
    Reply,
)
from sharecons.protocol.admin.results import Result, Results
from sharecons.protocol.codes import Code

__all__ = ["alter_consumer_group_offsets", "list_consumer_group_offsets"]

OffsetReplies = Mapping[TopicPartition, Reply[CommittedOffset | None]]
Committed = Results[TopicPartition, CommittedOffset | None]


async def list_consumer_group_offsets(
    executor: AdminExecutor,
    group_ids: Iterable[str],
    partitions: tuple[TopicPartition, ...] | None,
) -> Results[str, Committed]:
    async def send(
        node_id: int, keys: tuple[str, ...]
    ) -> Mapping[str, Reply[OffsetReplies]]:
        request = ListConsumerGroupOffsets(groups=dict.fromkeys(keys, partitions))
        response: Mapping[str, Reply[OffsetReplies]] = await executor.send(
            node_id, request
        )
        return {key: _merge(reply) for key, reply in response.items()}

    fetched = await executor.of_groups(group_ids, "fetch the offsets of", send)
    return Results({key: _results(key, one) for key, one in fetched.items()})


def _merge(reply: Reply[OffsetReplies]) -> Reply[OffsetReplies]:
    if reply.code != Code.NONE or reply.value is None:
        return reply._replace(value=None)
    return merge_replies(reply.value)


def _results(group_id: str, one: Result[OffsetReplies]) -> Result[Committed]:
    if one.error is not None:
        return Result(error=one.error)
    return Result(
        results_of(
            one.value,
            "fetch the offset of",
            lambda key: f"{key.topic}-{key.partition} in group {group_id!r}",
        )
    )


async def alter_consumer_group_offsets(
    executor: AdminExecutor,
    group_id: str,
    offsets: Mapping[TopicPartition, CommittedOffset],
) -> Results[TopicPartition, None]:
    action = "commit the offset of"
    missing = await missing_partitions(executor, offsets, action)
    existing = {key: offset for key, offset in offsets.items() if key not in missing}
    committed = await _send_commit(executor, group_id, existing)
    return Results(
        {
            key: Result(error=missing[key]) if key in missing else committed[key]
            for key in offsets
        }
    )


async def _send_commit(
    executor: AdminExecutor,
    group_id: str,
    offsets: Mapping[TopicPartition, CommittedOffset],
) -> Results[TopicPartition, None]:
    if not offsets:
        return Results({})
    request = AlterConsumerGroupOffsets(group_id=group_id, offsets=offsets)

    async def send(
        node_id: int, keys: tuple[str, ...]
    ) -> Mapping[str, Reply[Mapping[TopicPartition, Reply[None]]]]:
        response: Mapping[TopicPartition, Reply[None]] = await executor.send(
            node_id, request
        )
        return {group_id: merge_replies(response, (Code.UNKNOWN_TOPIC_OR_PARTITION,))}

    results = await executor.of_groups([group_id], "commit for", send)
    return part_results(
        results[group_id],
        offsets,
        "commit the offset of",
        lambda key: f"{key.topic}-{key.partition} in group {group_id!r}",
    )
