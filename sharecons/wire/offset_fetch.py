"""OffsetFetch (9): the committed offsets of consumer groups, classic and new.

Since version 8 for several groups in one request. Version 10 identifies topics by id.
"""

from collections.abc import Mapping
from typing import Any

from sharecons._record import TopicPartition
from sharecons.protocol.admin.models import CommittedOffset
from sharecons.protocol.admin.requests import (
    ListConsumerGroupOffsets,
    Partitions,
    Reply,
)
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import by_topic, none_if_negative, schema

__all__ = ["OFFSET_FETCH"]

Committed = Mapping[TopicPartition, Reply[CommittedOffset]]
Fetched = Mapping[str, Reply[Committed]]


def _write(request: ListConsumerGroupOffsets, version: int) -> bytes:
    v = schema("offset_fetch", version)
    return write_entity(
        v.OffsetFetchRequest(
            groups=tuple(
                v.request.OffsetFetchRequestGroup(
                    group_id=group_id, topics=_topics(v, partitions)
                )
                for group_id, partitions in request.groups.items()
            ),
            # Return a retriable error for offsets in an open transaction, so that
            # the result is final.
            require_stable=True,
        )
    )


def _topics(v: Any, partitions: Partitions | None) -> tuple[Any, ...] | None:
    if partitions is None:
        return None
    kind = v.request.OffsetFetchRequestTopics
    return tuple(
        kind(name=topic, partition_indexes=tuple(indexes))
        for topic, indexes in by_topic(partitions).items()
    )


def _read(frame: Frame, offset: int, version: int) -> Fetched:
    kind = schema("offset_fetch", version).OffsetFetchResponse
    return {
        group.group_id: Reply(int(group.error_code), None, _committed(group))
        for group in read_entity(kind, frame, offset).groups
    }


def _committed(group: Any) -> Committed:
    return {
        TopicPartition(topic.name, partition.partition_index): Reply(
            int(partition.error_code), None, _offset(partition)
        )
        for topic in group.topics
        for partition in topic.partitions
    }


def _offset(partition: Any) -> CommittedOffset | None:
    if partition.committed_offset < 0:
        return None
    return CommittedOffset(
        offset=partition.committed_offset,
        leader_epoch=none_if_negative(partition.committed_leader_epoch),
        metadata=partition.metadata or "",
    )


OFFSET_FETCH: Api[ListConsumerGroupOffsets, Fetched] = Api(
    key=9, name="OffsetFetch", versions=range(8, 10), write=_write, read=_read
)
