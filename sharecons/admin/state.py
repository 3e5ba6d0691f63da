"""The state of share-partitions, read from share coordinators without side effects."""

from collections.abc import Mapping
from typing import Final, TypeVar

from sharecons._record import TopicPartition
from sharecons.admin.offsets import list_share_group_offsets
from sharecons.net.admin_executor import AdminExecutor
from sharecons.protocol.admin.broker_errors import broker_error
from sharecons.protocol.admin.fanout import find_partition
from sharecons.protocol.admin.models import SharePartitionState, StateSummary, Topic
from sharecons.protocol.admin.requests import ReadState, ReadStateSummary, Reply
from sharecons.protocol.admin.results import Result, Results
from sharecons.protocol.codes import Code
from sharecons.protocol.partitions import SharePartition

__all__ = ["find_share_partitions", "read_state", "read_state_summary"]

Partitions = tuple[TopicPartition, ...]
SharePartitions = Mapping[TopicPartition, SharePartition]
Summaries = Mapping[SharePartition, Reply[StateSummary]]
States = Mapping[SharePartition, Reply[SharePartitionState]]

V = TypeVar("V")

ACTION: Final = "read the state of"


async def read_state(
    executor: AdminExecutor, group_id: str, partitions: Partitions | None
) -> Results[TopicPartition, SharePartitionState]:
    """Read states with the leader epoch that their coordinator already has.

    The coordinator takes a higher epoch for the epoch of a new leader, and fences the
    current one. So the epoch is read first, and again if it has grown meanwhile.
    """
    named = await find_share_partitions(executor, group_id, partitions)
    found = named.found

    async def send(
        node_id: int, keys: Partitions
    ) -> Mapping[TopicPartition, Reply[SharePartitionState]]:
        wanted = tuple(found[key] for key in keys)
        summaries = await _summaries(executor, node_id, group_id, wanted)
        epochs = {
            each: reply.value.leader_epoch
            for each, reply in summaries.items()
            if _has_start_offset(reply) and reply.value is not None
        }
        states = await _states(executor, node_id, group_id, epochs)
        return {
            key: states.get(each) or _reply_without_state(summaries[each])
            for key, each in zip(keys, wanted, strict=True)
            if each in summaries
        }

    read = await executor.of_share_partitions(group_id, found, ACTION, send)
    return _with_unknown(named, read)


async def read_state_summary(
    executor: AdminExecutor, group_id: str, partitions: Partitions | None
) -> Results[TopicPartition, StateSummary]:
    named = await find_share_partitions(executor, group_id, partitions)
    found = named.found

    async def send(
        node_id: int, keys: Partitions
    ) -> Mapping[TopicPartition, Reply[StateSummary]]:
        wanted = tuple(found[key] for key in keys)
        summaries = await _summaries(executor, node_id, group_id, wanted)
        return {
            key: summaries[each]
            for key, each in zip(keys, wanted, strict=True)
            if each in summaries
        }

    read = await executor.of_share_partitions(group_id, found, ACTION, send)
    return _with_unknown(named, read)


async def _summaries(
    executor: AdminExecutor,
    node_id: int,
    group_id: str,
    wanted: tuple[SharePartition, ...],
) -> Summaries:
    request = ReadStateSummary(group_id=group_id, partitions=wanted)
    response: Summaries = await executor.send(node_id, request)
    return response


async def _states(
    executor: AdminExecutor,
    node_id: int,
    group_id: str,
    leader_epochs: Mapping[SharePartition, int],
) -> States:
    if not leader_epochs:
        return {}
    request = ReadState(group_id=group_id, leader_epochs=leader_epochs)
    response: States = await executor.send(node_id, request)
    return response


def _has_start_offset(reply: Reply[StateSummary]) -> bool:
    summary = reply.value
    return (
        reply.code == Code.NONE
        and summary is not None
        and summary.start_offset is not None
    )


def _reply_without_state(reply: Reply[StateSummary]) -> Reply[SharePartitionState]:
    """Return an empty state, or the error, for a partition without readable state."""
    if reply.code != Code.NONE or reply.value is None:
        return Reply(reply.code, reply.message, None)
    state = SharePartitionState(
        start_offset=None, state_epoch=reply.value.state_epoch, batches=()
    )
    return Reply(Code.NONE, None, state)


async def find_share_partitions(
    executor: AdminExecutor, group_id: str, partitions: Partitions | None
) -> Results[TopicPartition, SharePartition]:
    """Look up the topic ids of partitions; None means all that the group has."""
    if partitions is None:
        listed = await list_share_group_offsets(executor, [group_id], None)
        partitions = tuple(listed[group_id].value)
    if not partitions:
        return Results({})
    names = (partition.topic for partition in partitions)
    topics = (await executor.brokers.request_topics(names, executor.deadline)).topics
    return Results({key: _share_partition(key, topics) for key in partitions})


def _share_partition(
    key: TopicPartition, topics: Mapping[str, Reply[Topic]]
) -> Result[SharePartition]:
    code, message, placed = find_partition(topics, key)
    topic = topics[key.topic].value
    if placed is None or topic is None:
        what = f"{key.topic}-{key.partition}"
        return Result(error=broker_error(ACTION, what, code, message))
    return Result(SharePartition(topic.topic_id, key.partition))


def _with_unknown(
    named: Results[TopicPartition, SharePartition], read: Results[TopicPartition, V]
) -> Results[TopicPartition, V]:
    return Results(
        {
            key: read[key] if key in read else Result(error=one.error)
            for key, one in named.items()
        }
    )
