"""Metadata (3) for a consumer: brokers, and topics with their ids and leaders.

`topics` decodes the rest, for the admin client.
"""

from importlib import import_module

from sharecons.protocol.group.messages import (
    MetadataRequest,
    MetadataResponse,
    TopicDescription,
)
from sharecons.protocol.partitions import Endpoint, PartitionLeader
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.topic_ids import topic_id_of, uuid_of

__all__ = ["METADATA"]

VERSIONS = range(12, 14)

_SCHEMAS = {
    version: import_module(f"kio.schema.metadata.v{version}") for version in VERSIONS
}


def _write(request: MetadataRequest, version: int) -> bytes:
    schema = _SCHEMAS[version]
    by_name = [
        schema.request.MetadataRequestTopic(topic_id=None, name=name)
        for name in request.names
    ]
    by_id = [
        schema.request.MetadataRequestTopic(topic_id=uuid_of(topic_id), name=None)
        for topic_id in request.ids
    ]
    return write_entity(
        schema.MetadataRequest(
            topics=(*by_name, *by_id),
            # A consumer must not create a topic whose name is misspelled.
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
    )


def _read(frame: Frame, offset: int, version: int) -> MetadataResponse:
    response = read_entity(_SCHEMAS[version].MetadataResponse, frame, offset)
    return MetadataResponse(
        brokers={b.node_id: Endpoint(b.host, b.port) for b in response.brokers},
        topics=tuple(
            TopicDescription(
                error=int(topic.error_code),
                name=topic.name,
                topic_id=topic_id_of(topic.topic_id) if topic.topic_id else None,
                leaders={
                    p.partition_index: PartitionLeader(p.leader_id, p.leader_epoch)
                    for p in topic.partitions
                },
            )
            for topic in response.topics
        ),
        cluster_id=response.cluster_id,
    )


METADATA: Api[MetadataRequest, MetadataResponse] = Api(
    key=3, name="Metadata", versions=VERSIONS, write=_write, read=_read
)
