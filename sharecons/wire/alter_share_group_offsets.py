"""AlterShareGroupOffsets (91): sets the start offsets of an empty group (KIP-932)."""

from collections.abc import Mapping
from typing import Any

from sharecons._record import TopicPartition
from sharecons.protocol.admin.requests import AlterShareGroupOffsets, Reply
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import by_topic, schema

__all__ = ["ALTER_SHARE_GROUP_OFFSETS"]

Altered = Reply[Mapping[TopicPartition, Reply[None]]]


def _write(request: AlterShareGroupOffsets, version: int) -> bytes:
    v = schema("alter_share_group_offsets", version)
    return write_entity(
        v.AlterShareGroupOffsetsRequest(
            group_id=request.group_id,
            topics=tuple(
                _topic(v, request, topic, partitions)
                for topic, partitions in by_topic(request.offsets).items()
            ),
        )
    )


def _topic(
    v: Any, request: AlterShareGroupOffsets, topic: str, partitions: list[int]
) -> Any:
    kind = v.request.AlterShareGroupOffsetsRequestPartition
    return v.request.AlterShareGroupOffsetsRequestTopic(
        topic_name=topic,
        partitions=tuple(
            kind(
                partition_index=partition,
                start_offset=request.offsets[TopicPartition(topic, partition)],
            )
            for partition in partitions
        ),
    )


def _read(frame: Frame, offset: int, version: int) -> Altered:
    v = schema("alter_share_group_offsets", version)
    response = read_entity(v.AlterShareGroupOffsetsResponse, frame, offset)
    altered: Mapping[TopicPartition, Reply[None]] = {
        TopicPartition(topic.topic_name, partition.partition_index): Reply(
            int(partition.error_code), partition.error_message, None
        )
        for topic in response.responses
        for partition in topic.partitions
    }
    return Reply(int(response.error_code), response.error_message, altered)


ALTER_SHARE_GROUP_OFFSETS: Api[AlterShareGroupOffsets, Altered] = Api(
    key=91,
    name="AlterShareGroupOffsets",
    versions=range(0, 1),
    write=_write,
    read=_read,
    since="4.1",
)
