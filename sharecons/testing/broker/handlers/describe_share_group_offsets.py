"""DescribeShareGroupOffsets 0 and 1: a group's positions (KIP-932; lag: KIP-1226).

The group need not exist: unknown partitions have start offset -1 and no error. Null
requests the partitions of all existing topics that the group has ever subscribed to.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.group_checks import check_access, check_coordinator
from sharecons.testing.broker.share.assignor import TopicPartition
from sharecons.testing.broker.share.group import ShareGroup
from sharecons.testing.broker.share.partitions import GroupOffset
from sharecons.testing.broker.topics import Topic

__all__ = ["handle"]

Offsets: TypeAlias = Mapping[TopicPartition, GroupOffset]

UNKNOWN: Final = -1


async def handle(request: Request, context: Context) -> Response:
    return {"groups": [_group(group, context) for group in request.groups]}


def _group(group: Request, context: Context) -> Response:
    try:
        check_access(context, "DESCRIBE", group.group_id)
        check_coordinator(context, group.group_id)
    except GroupError as error:
        return {"group_id": group.group_id, **error.fields}
    offsets = {
        (each.topic_id, each.partition): each
        for each in context.cluster.share_partitions.offsets(group.group_id)
    }
    if group.topics is None:
        requested = _all(group.group_id, context)
    else:
        requested = {topic.topic_name: topic.partitions for topic in group.topics}
    topics = [
        _topic(name, partitions, offsets, context)
        for name, partitions in requested.items()
    ]
    return {"group_id": group.group_id, "topics": topics}


def _all(group_id: str, context: Context) -> dict[str, list[int]]:
    group = context.cluster.groups.get(group_id)
    partitions: dict[str, list[int]] = {}
    if not isinstance(group, ShareGroup):
        return partitions
    for topic_id, partition in sorted(group.initialized):
        topic = context.cluster.topics.by_id(topic_id)
        if topic and not _is_denied(topic.name, context):
            partitions.setdefault(topic.name, []).append(partition)
    return partitions


def _is_denied(topic: str, context: Context) -> bool:
    return context.cluster.authorizer.denies("DESCRIBE", "TOPIC", topic)


def _topic(
    name: str, partitions: Iterable[int], offsets: Offsets, context: Context
) -> Response:
    result = {"topic_name": name}
    if _is_denied(name, context):
        code = ErrorCode.topic_authorization_failed
        denied = [{"partition_index": each, "error_code": code} for each in partitions]
        return {**result, "partitions": denied}
    topic = context.cluster.topics.by_name(name)
    if topic is None:
        return {**result, "partitions": [_unknown(each) for each in partitions]}
    described = [_partition(topic, each, offsets) for each in partitions]
    return {**result, "topic_id": topic.topic_id, "partitions": described}


def _unknown(partition: int) -> Response:
    return {"partition_index": partition, "start_offset": UNKNOWN, "lag": UNKNOWN}


def _partition(topic: Topic, index: int, offsets: Offsets) -> Response:
    offset = offsets.get((topic.topic_id, index))
    partition = topic.partition(index)
    if offset is None or partition is None:
        return _unknown(index)
    return {
        "partition_index": index,
        "start_offset": offset.start_offset,
        "leader_epoch": offset.leader_epoch,
        "lag": offset.lag(partition.log.end_offset),
    }
