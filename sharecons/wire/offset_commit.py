"""OffsetCommit (8) from outside the group. Version 10 identifies topics by id."""

from collections.abc import Mapping
from typing import Any, Final

from sharecons._record import TopicPartition
from sharecons.protocol.admin.requests import AlterConsumerGroupOffsets, Reply
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import NO_EPOCH, by_topic, schema

__all__ = ["OFFSET_COMMIT"]

Committed = Mapping[TopicPartition, Reply[None]]

NO_MEMBER: Final = ""
NO_GENERATION: Final = -1


def _write(request: AlterConsumerGroupOffsets, version: int) -> bytes:
    v = schema("offset_commit", version)
    return write_entity(
        v.OffsetCommitRequest(
            group_id=request.group_id,
            generation_id_or_member_epoch=NO_GENERATION,
            member_id=NO_MEMBER,
            topics=tuple(
                v.request.OffsetCommitRequestTopic(
                    name=topic,
                    partitions=tuple(
                        _partition(v, request, TopicPartition(topic, partition))
                        for partition in partitions
                    ),
                )
                for topic, partitions in by_topic(request.offsets).items()
            ),
        )
    )


def _partition(
    v: Any, request: AlterConsumerGroupOffsets, partition: TopicPartition
) -> Any:
    committed = request.offsets[partition]
    epoch = committed.leader_epoch
    return v.request.OffsetCommitRequestPartition(
        partition_index=partition.partition,
        committed_offset=committed.offset,
        committed_leader_epoch=NO_EPOCH if epoch is None else epoch,
        committed_metadata=committed.metadata,
    )


def _read(frame: Frame, offset: int, version: int) -> Committed:
    kind = schema("offset_commit", version).OffsetCommitResponse
    return {
        TopicPartition(topic.name, partition.partition_index): Reply(
            int(partition.error_code), None, None
        )
        for topic in read_entity(kind, frame, offset).topics
        for partition in topic.partitions
    }


OFFSET_COMMIT: Api[AlterConsumerGroupOffsets, Committed] = Api(
    key=8, name="OffsetCommit", versions=range(8, 10), write=_write, read=_read
)
