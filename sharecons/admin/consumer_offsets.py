"""Committed offsets of consumer groups: listing, and setting without a member."""

from collections.abc import Iterable, Mapping

from sharecons._record import TopicPartition
from sharecons.admin.client_executor import ClientExecutor
from sharecons.admin.missing import missing_partitions
from sharecons.admin.offsets import list_offsets_of
from sharecons.protocol.admin.fanout import merge_replies, part_results
from sharecons.protocol.admin.models import CommittedOffset
from sharecons.protocol.admin.requests import (
    AlterConsumerGroupOffsets,
    ListConsumerGroupOffsets,
    Reply,
)
from sharecons.protocol.admin.results import Result, Results
from sharecons.protocol.codes import Code

__all__ = ["alter_consumer_group_offsets", "list_consumer_group_offsets"]

Committed = Results[TopicPartition, CommittedOffset | None]


async def list_consumer_group_offsets(
    executor: ClientExecutor,
    group_ids: Iterable[str],
    partitions: tuple[TopicPartition, ...] | None,
) -> Results[str, Committed]:
    return await list_offsets_of(
        executor, group_ids, partitions, ListConsumerGroupOffsets, "fetch"
    )


async def alter_consumer_group_offsets(
    executor: ClientExecutor,
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
    executor: ClientExecutor,
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
