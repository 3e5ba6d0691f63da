"""DescribeShareGroupOffsets (90): the start offsets of share groups (KIP-932).

Version 1 adds the lag (KIP-1226), since Kafka 4.2.
"""

from collections.abc import Mapping
from typing import Any

from sharecons._record import TopicPartition
from sharecons.protocol.admin.models import GroupOffset
from sharecons.protocol.admin.requests import (
    UNKNOWN_LAG,
    ListShareGroupOffsets,
    Partitions,
    Reply,
)
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import by_topic, none_if_negative, schema

__all__ = ["DESCRIBE_SHARE_GROUP_OFFSETS"]

GroupOffsets = Mapping[TopicPartition, Reply[GroupOffset]]
Described = Mapping[str, Reply[GroupOffsets]]

LAG_SINCE = 1


def _write(request: ListShareGroupOffsets, version: int) -> bytes:
    v = schema("describe_share_group_offsets", version)
    kind = v.request.DescribeShareGroupOffsetsRequestGroup
    return write_entity(
        v.DescribeShareGroupOffsetsRequest(
            groups=tuple(
                kind(group_id=group_id, topics=_topics(v, partitions))
                for group_id, partitions in request.groups.items()
            )
        )
    )


def _topics(v: Any, partitions: Partitions | None) -> tuple[Any, ...] | None:
    if partitions is None:
        return None
    kind = v.request.DescribeShareGroupOffsetsRequestTopic
    return tuple(
        kind(topic_name=topic, partitions=tuple(indexes))
        for topic, indexes in by_topic(partitions).items()
    )


def _read(frame: Frame, offset: int, version: int) -> Described:
    v = schema("describe_share_group_offsets", version)
    response = read_entity(v.DescribeShareGroupOffsetsResponse, frame, offset)
    return {
        group.group_id: Reply(
            int(group.error_code), group.error_message, _offsets(group, version)
        )
        for group in response.groups
    }


def _offsets(group: Any, version: int) -> GroupOffsets:
    return {
        TopicPartition(topic.topic_name, partition.partition_index): Reply(
            int(partition.error_code),
            partition.error_message,
            _offset(partition, version),
        )
        for topic in group.topics
        for partition in topic.partitions
    }


def _offset(partition: Any, version: int) -> GroupOffset:
    start_offset = none_if_negative(partition.start_offset)
    if start_offset is None:
        return GroupOffset(start_offset=None, leader_epoch=None, lag=None)
    return GroupOffset(
        start_offset=start_offset,
        leader_epoch=none_if_negative(partition.leader_epoch),
        lag=none_if_negative(partition.lag) if version >= LAG_SINCE else UNKNOWN_LAG,
    )


DESCRIBE_SHARE_GROUP_OFFSETS: Api[ListShareGroupOffsets, Described] = Api(
    key=90,
    name="DescribeShareGroupOffsets",
    versions=range(0, 2),
    write=_write,
    read=_read,
    since="4.1",
)
