"""The state of share-partitions, read from share coordinators without side effects."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from sharecons._record import TopicPartition
from sharecons.admin.client_executor import ClientExecutor, GroupPartition
from sharecons.admin.offsets import list_share_group_offsets
from sharecons.protocol.admin.broker_errors import broker_error
from sharecons.protocol.admin.fanout import find_partition
from sharecons.protocol.admin.models import SharePartitionState, StateSummary, Topic
from sharecons.protocol.admin.requests import ReadState, ReadStateSummary, Reply
from sharecons.protocol.admin.results import Result, Results
from sharecons.protocol.codes import Code
from sharecons.protocol.partitions import SharePartition

__all__ = ["find_share_partitions", "read_state_summary", "read_states"]

Partitions = tuple[TopicPartition, ...]
Summaries = Mapping[SharePartition, Reply[StateSummary]]
States = Mapping[SharePartition, Reply[SharePartitionState]]

V = TypeVar("V")

ACTION: Final = "read the state of"


async def read_states(
    executor: ClientExecutor, groups: Mapping[str, Partitions | None]
) -> Mapping[str, Results[TopicPartition, SharePartitionState]]:
    """Read states with the leader epochs that their coordinators already have.

    The coordinator takes a higher epoch for the epoch of a new leader, and fences the
    current one. So the epoch is read first, and again if it has grown meanwhile.
    """
    return await _read(executor, groups, _states)


async def read_state_summary(
    executor: ClientExecutor, group_id: str, partitions: Partitions | None
) -> Results[TopicPartition, StateSummary]:
    return (await _read(executor, {group_id: partitions}, _summaries))[group_id]


async def _read(
    executor: ClientExecutor,
    groups: Mapping[str, Partitions | None],
    send: Callable[
        [ClientExecutor, int, str, tuple[SharePartition, ...]],
        Awaitable[Mapping[SharePartition, Reply[V]]],
    ],
) -> Mapping[str, Results[TopicPartition, V]]:
    """Look up topics and coordinators of all groups, then request each group."""
    named = await find_share_partitions(executor, groups)
    found = {
        (group_id, key): each
        for group_id, results in named.items()
        for key, each in results.found.items()
    }

    async def send_group(
        node_id: int, keys: tuple[GroupPartition, ...]
    ) -> Mapping[GroupPartition, Reply[V]]:
        group_id = keys[0][0]
        wanted = tuple(found[key] for key in keys)
        replies = await send(executor, node_id, group_id, wanted)
        return {key: replies[found[key]] for key in keys if found[key] in replies}

    read = await executor.of_share_partitions(found, ACTION, send_group)
    return {
        group_id: Results(
            {
                key: read.get((group_id, key), Result(error=one.error))
                for key, one in results.items()
            }
        )
        for group_id, results in named.items()
    }


async def _summaries(
    executor: ClientExecutor,
    node_id: int,
    group_id: str,
    wanted: tuple[SharePartition, ...],
) -> Summaries:
    request = ReadStateSummary(group_id=group_id, partitions=wanted)
    response: Summaries = await executor.send(node_id, request)
    return response


async def _states(
    executor: ClientExecutor,
    node_id: int,
    group_id: str,
    wanted: tuple[SharePartition, ...],
) -> States:
    summaries = await _summaries(executor, node_id, group_id, wanted)
    epochs = {
        each: reply.value.leader_epoch
        for each, reply in summaries.items()
        if _has_start_offset(reply) and reply.value is not None
    }
    states: States = {}
    if epochs:
        request = ReadState(group_id=group_id, leader_epochs=epochs)
        states = await executor.send(node_id, request)
    return {
        each: states.get(each) or _reply_without_state(reply)
        for each, reply in summaries.items()
    }


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
    executor: ClientExecutor, groups: Mapping[str, Partitions | None]
) -> Mapping[str, Results[TopicPartition, SharePartition]]:
    """Look up the topic ids of partitions; None means all that a group has."""
    every = [group_id for group_id, wanted in groups.items() if wanted is None]
    listed = await list_share_group_offsets(executor, every, None) if every else {}
    partitions = {
        group_id: tuple(listed[group_id].value) if wanted is None else wanted
        for group_id, wanted in groups.items()
    }
    names = {key.topic for keys in partitions.values() for key in keys}
    if not names:
        return {group_id: Results({}) for group_id in groups}
    topics = (await executor.brokers.request_topics(names, executor.deadline)).topics
    return {
        group_id: Results({key: _share_partition(key, topics) for key in keys})
        for group_id, keys in partitions.items()
    }


def _share_partition(
    key: TopicPartition, topics: Mapping[str, Reply[Topic]]
) -> Result[SharePartition]:
    code, message, placed = find_partition(topics, key)
    topic = topics[key.topic].value
    if placed is None or topic is None:
        what = f"{key.topic}-{key.partition}"
        return Result(error=broker_error(ACTION, what, code, message))
    return Result(SharePartition(topic.topic_id, key.partition))
