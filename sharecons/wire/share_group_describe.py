"""ShareGroupDescribe (77): describes share groups and their members (KIP-932)."""

from collections.abc import Mapping
from typing import Any

from sharecons._record import TopicPartition
from sharecons.protocol.admin.models import ShareGroup, ShareGroupMember
from sharecons.protocol.admin.requests import DescribeShareGroups, Reply
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import operations, schema

__all__ = ["SHARE_GROUP_DESCRIBE"]

Described = Mapping[str, Reply[ShareGroup]]


def _write(request: DescribeShareGroups, version: int) -> bytes:
    return write_entity(
        schema("share_group_describe", version).ShareGroupDescribeRequest(
            group_ids=request.group_ids,
            include_authorized_operations=request.authorized_operations,
        )
    )


def _read(frame: Frame, offset: int, version: int) -> Described:
    kind = schema("share_group_describe", version).ShareGroupDescribeResponse
    return {
        group.group_id: Reply(int(group.error_code), group.error_message, _group(group))
        for group in read_entity(kind, frame, offset).groups
    }


def _group(group: Any) -> ShareGroup:
    return ShareGroup(
        group_id=group.group_id,
        state=group.group_state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor=group.assignor_name,
        members=tuple(map(_member, group.members)),
        authorized_operations=operations(group.authorized_operations),
    )


def _member(member: Any) -> ShareGroupMember:
    return ShareGroupMember(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        rack=member.rack_id,
        subscription=tuple(member.subscribed_topic_names),
        assignment=tuple(
            TopicPartition(topic.topic_name, partition)
            for topic in member.assignment.topic_partitions
            for partition in topic.partitions
        ),
    )


SHARE_GROUP_DESCRIBE: Api[DescribeShareGroups, Described] = Api(
    key=77,
    name="ShareGroupDescribe",
    versions=range(1, 2),
    write=_write,
    read=_read,
    since="4.1",
)
