"""DeleteRecords (21): deletes the records before an offset of each partition."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sharecons._record import TopicPartition
from sharecons.protocol.admin.requests import DeleteRecords, Reply
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import by_topic, schema

__all__ = ["DELETE_RECORDS"]

Deleted = Mapping[TopicPartition, Reply[int]]


def _write(request: DeleteRecords, version: int) -> bytes:
    v = schema("delete_records", version)
    return write_entity(
        v.DeleteRecordsRequest(
            topics=tuple(
                v.request.DeleteRecordsTopic(
                    name=topic,
                    partitions=tuple(
                        _partition(v, request, TopicPartition(topic, partition))
                        for partition in partitions
                    ),
                )
                for topic, partitions in by_topic(request.offsets).items()
            ),
            timeout=timedelta(seconds=request.timeout),
        )
    )


def _partition(v: Any, request: DeleteRecords, partition: TopicPartition) -> Any:
    return v.request.DeleteRecordsPartition(
        partition_index=partition.partition, offset=request.offsets[partition]
    )


def _read(frame: Frame, offset: int, version: int) -> Deleted:
    kind = schema("delete_records", version).DeleteRecordsResponse
    return {
        TopicPartition(topic.name, partition.partition_index): Reply(
            int(partition.error_code), None, partition.low_watermark
        )
        for topic in read_entity(kind, frame, offset).topics
        for partition in topic.partitions
    }


DELETE_RECORDS: Api[DeleteRecords, Deleted] = Api(
    key=21, name="DeleteRecords", versions=range(2, 3), write=_write, read=_read
)
