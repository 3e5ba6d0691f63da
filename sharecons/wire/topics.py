"""Metadata (3) for the admin client: brokers, and topics with all their details.

`metadata` is for a consumer. The request does not create missing topics.
"""

from typing import Any

from sharecons.protocol.admin.models import Broker, Topic, TopicPartitionInfo
from sharecons.protocol.admin.requests import Reply, TopicMetadata, TopicMetadataRequest
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import none_if_negative, operations, schema
from sharecons.wire.topic_ids import topic_id_of

__all__ = ["TOPICS"]


def _write(request: TopicMetadataRequest, version: int) -> bytes:
    v = schema("metadata", version)
    names = request.names
    kind = v.request.MetadataRequestTopic
    return write_entity(
        v.MetadataRequest(
            topics=None
            if names is None
            else tuple(kind(topic_id=None, name=name) for name in names),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=request.authorized_operations,
        )
    )


def _read(frame: Frame, offset: int, version: int) -> TopicMetadata:
    kind = schema("metadata", version).MetadataResponse
    response = read_entity(kind, frame, offset)
    return TopicMetadata(
        brokers={
            broker.node_id: Broker(
                node_id=broker.node_id,
                host=broker.host,
                port=broker.port,
                rack=broker.rack,
            )
            for broker in response.brokers
        },
        topics={
            topic.name: Reply(int(topic.error_code), None, _topic(topic))
            for topic in response.topics
            # The protocol allows null: for a topic id that the broker does not know.
            if topic.name is not None
        },
        cluster_id=response.cluster_id,
    )


def _topic(topic: Any) -> Topic:
    return Topic(
        name=topic.name,
        topic_id=topic_id_of(topic.topic_id),
        internal=topic.is_internal,
        partitions={
            partition.partition_index: TopicPartitionInfo(
                leader=none_if_negative(partition.leader_id),
                leader_epoch=none_if_negative(partition.leader_epoch),
                replicas=tuple(partition.replica_nodes),
                in_sync=tuple(partition.isr_nodes),
            )
            for partition in sorted(
                topic.partitions, key=lambda each: int(each.partition_index)
            )
        },
        authorized_operations=operations(topic.topic_authorized_operations),
    )


TOPICS: Api[TopicMetadataRequest, TopicMetadata] = Api(
    key=3, name="Metadata", versions=range(12, 14), write=_write, read=_read
)
