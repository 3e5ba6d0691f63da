"""OffsetDelete 0: delete some of a group's offsets (KIP-496).

While the group has members, only offsets of topics without subscribers.
"""

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.group_checks import (
    check_access,
    check_coordinator,
    check_group_id,
)
from sharecons.testing.broker.groups.classic import ClassicGroup
from sharecons.testing.broker.groups.offsets import TopicPartition
from sharecons.testing.broker.offset_partitions import each_partition

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    try:
        group = _group(request, context)
    except GroupError as error:
        return {"error_code": error.code}

    def delete(topic_partition: TopicPartition, _: Request) -> ErrorCode:
        if group.is_subscribed(topic_partition[0]):
            return ErrorCode.group_subscribed_to_topic
        group.offsets.delete(topic_partition)
        return ErrorCode.none

    return {"topics": each_partition(context, request.topics, delete)}


def _group(request: Request, context: Context) -> ClassicGroup:
    check_access(context, "DELETE", request.group_id)
    check_group_id(request.group_id)
    check_coordinator(context, request.group_id)
    group = context.cluster.groups.classic(request.group_id)
    if group is None:
        raise GroupError(ErrorCode.group_id_not_found)
    group.advance(context.now)
    group.check_offset_delete()
    return group
