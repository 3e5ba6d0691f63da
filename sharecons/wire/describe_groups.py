"""DescribeGroups (15): classic groups, of consumers and other clients.

For a group that does not exist, version 6 returns GROUP_ID_NOT_FOUND, version 5 the
state "Dead" without an error.
"""

from collections.abc import Mapping
from typing import Any, Final

from sharecons.protocol.admin.models import ConsumerGroup, ConsumerGroupMember
from sharecons.protocol.admin.requests import DescribeClassicGroups, Reply
from sharecons.protocol.codes import Code
from sharecons.wire import consumer_protocol
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import operations, schema

__all__ = ["DESCRIBE_GROUPS"]

Described = Mapping[str, Reply[ConsumerGroup]]

MESSAGE_SINCE: Final = 6
CONSUMER: Final = "consumer"


def _write(request: DescribeClassicGroups, version: int) -> bytes:
    return write_entity(
        schema("describe_groups", version).DescribeGroupsRequest(
            groups=request.group_ids,
            include_authorized_operations=request.authorized_operations,
        )
    )


def _read(frame: Frame, offset: int, version: int) -> Described:
    kind = schema("describe_groups", version).DescribeGroupsResponse
    return {
        group.group_id: _reply(group, version)
        for group in read_entity(kind, frame, offset).groups
    }


def _reply(group: Any, version: int) -> Reply[ConsumerGroup]:
    code = int(group.error_code)
    if code == Code.NONE and group.group_state == "Dead":
        code = Code.GROUP_ID_NOT_FOUND
    message = group.error_message if version >= MESSAGE_SINCE else None
    return Reply(code, message, _group(group))


def _group(group: Any) -> ConsumerGroup:
    consumers = group.protocol_type == CONSUMER
    return ConsumerGroup(
        group_id=group.group_id,
        group_type="classic",
        state=group.group_state,
        assignor=group.protocol_data,
        members=tuple(_member(member, consumers) for member in group.members),
        authorized_operations=operations(group.authorized_operations),
    )


def _member(member: Any, consumers: bool) -> ConsumerGroupMember:
    metadata = member.member_metadata if consumers else b""
    assignment = member.member_assignment if consumers else b""
    return ConsumerGroupMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscription=consumer_protocol.read_subscription(metadata),
        assignment=consumer_protocol.read_assignment(assignment),
    )


DESCRIBE_GROUPS: Api[DescribeClassicGroups, Described] = Api(
    key=15, name="DescribeGroups", versions=range(5, 7), write=_write, read=_read
)
