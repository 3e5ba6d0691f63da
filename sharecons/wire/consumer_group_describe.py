"""ConsumerGroupDescribe (69): consumer groups of the new protocol (KIP-848)."""

from collections.abc import Mapping
from typing import Any

from sharecons._record import TopicPartition
from sharecons.protocol.admin.models import ConsumerGroup, ConsumerGroupMember
from sharecons.protocol.admin.requests import DescribeConsumerGroups, Reply
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import operations, schema

__all__ = ["CONSUMER_GROUP_DESCRIBE"]

Described = Mapping[str, Reply[ConsumerGroup]]


def _write(request: DescribeConsumerGroups, version: int) -> bytes:
    return write_entity(
        schema("consumer_group_describe", version).ConsumerGroupDescribeRequest(
            group_ids=request.group_ids,
            include_authorized_operations=request.authorized_operations,
        )
    )


def _read(frame: Frame, offset: int, version: int) -> Described:
    kind = schema("consumer_group_describe", version).ConsumerGroupDescribeResponse
    return {
        group.group_id: Reply(int(group.error_code), group.error_message, _group(group))
        for group in read_entity(kind, frame, offset).groups
    }


def _group(group: Any) -> ConsumerGroup:
    return ConsumerGroup(
        group_id=group.group_id,
        group_type="consumer",
        state=group.group_state,
        assignor=group.assignor_name,
        members=tuple(map(_member, group.members)),
        authorized_operations=operations(group.authorized_operations),
    )


def _member(member: Any) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscription=tuple(member.subscribed_topic_names),
        assignment=tuple(
            TopicPartition(topic.topic_name, partition)
            for topic in member.assignment.topic_partitions
            for partition in topic.partitions
        ),
    )


CONSUMER_GROUP_DESCRIBE: Api[DescribeConsumerGroups, Described] = Api(
    key=69,
    name="ConsumerGroupDescribe",
    versions=range(0, 2),
    write=_write,
    read=_read,
)
