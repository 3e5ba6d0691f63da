"""ListOffsets (2): offsets in partitions' logs, by timestamp or at either end.

Version 7 adds the offset of the highest timestamp. Versions after 8 are only needed for
tiered storage.
"""

from collections.abc import Mapping
from typing import Any, Final

from sharecons._record import TopicPartition
from sharecons.protocol.admin.models import LogOffset
from sharecons.protocol.admin.requests import ListOffsets, Reply
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import by_topic, none_if_negative, schema

__all__ = ["LIST_OFFSETS"]

Listed = Mapping[TopicPartition, Reply[LogOffset]]

CONSUMER: Final = -1
"""The replica id of clients."""


def _write(request: ListOffsets, version: int) -> bytes:
    v = schema("list_offsets", version)
    return write_entity(
        v.ListOffsetsRequest(
            replica_id=CONSUMER,
            isolation_level=int(request.read_committed),
            topics=tuple(
                v.request.ListOffsetsTopic(
                    name=topic,
                    partitions=tuple(
                        _partition(v, request, TopicPartition(topic, partition))
                        for partition in partitions
                    ),
                )
                for topic, partitions in by_topic(request.specs).items()
            ),
        )
    )


def _partition(v: Any, request: ListOffsets, partition: TopicPartition) -> Any:
    return v.request.ListOffsetsPartition(
        partition_index=partition.partition,
        timestamp=request.specs[partition].timestamp,
    )


def _read(frame: Frame, offset: int, version: int) -> Listed:
    kind = schema("list_offsets", version).ListOffsetsResponse
    return {
        TopicPartition(topic.name, partition.partition_index): Reply(
            int(partition.error_code),
            None,
            LogOffset(
                offset=none_if_negative(partition.offset),
                timestamp=none_if_negative(partition.timestamp),
                leader_epoch=none_if_negative(partition.leader_epoch),
            ),
        )
        for topic in read_entity(kind, frame, offset).topics
        for partition in topic.partitions
    }


LIST_OFFSETS: Api[ListOffsets, Listed] = Api(
    key=2, name="ListOffsets", versions=range(7, 9), write=_write, read=_read
)
