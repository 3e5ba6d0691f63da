"""AlterShareGroupOffsets 0: reset an empty group to other offsets (KIP-932).

A group that does not exist is created. Offsets are not checked, even if they are
negative or past the end of the log, and the last one of a partition counts (measured on
Kafka 4.4.0). Each partition has its own result; the whole request fails if the
group has members or is not a share group. While `__share_group_state` cannot be
created, a broker does not respond (measured on Kafka 4.4.0).
"""

import math
from collections.abc import Sequence
from typing import Final

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.coordinators import SHARE
from sharecons.testing.broker.errors import NO_SUCH_PARTITION, TOPIC_DENIED, GroupError
from sharecons.testing.broker.group_checks import (
    check_access,
    check_coordinator,
    check_writable,
)
from sharecons.testing.broker.internal_topics import ensure_state_topic
from sharecons.testing.broker.share.group import ShareGroup
from sharecons.testing.broker.share_lookup import find_group

__all__ = ["INVALID_ID", "NOT_EMPTY", "handle"]

INVALID_ID: Final = "The group id is invalid."
NOT_EMPTY: Final = "The group is not empty."


async def handle(request: Request, context: Context) -> Response:
    try:
        group = _group(request.group_id, context)
    except GroupError as error:
        return error.fields
    if not ensure_state_topic(context.cluster, SHARE):
        await context.wait((), math.inf)
    partitions: dict[str, list[Request]] = {}
    for topic in request.topics:
        partitions.setdefault(topic.topic_name, []).extend(topic.partitions)
    return {"responses": [_topic(*each, group, context) for each in partitions.items()]}


def _group(group_id: str, context: Context) -> ShareGroup:
    check_access(context, "READ", group_id)
    if not group_id:
        raise GroupError(ErrorCode.invalid_group_id, INVALID_ID)
    check_coordinator(context, group_id)
    check_writable(context)
    group = find_group(context, group_id)
    if group is None:
        group = ShareGroup(group_id)
        context.cluster.groups.add(group)
    elif group.members:
        raise GroupError(ErrorCode.non_empty_group, NOT_EMPTY)
    return group


def _topic(
    name: str, requests: Sequence[Request], group: ShareGroup, context: Context
) -> Response:
    topic = context.cluster.topics.by_name(name)
    is_denied = context.cluster.authorizer.denies("READ", "TOPIC", name)

    def result(request: Request) -> Response:
        index = request.partition_index
        if is_denied:
            return {"partition_index": index, **TOPIC_DENIED.fields}
        if topic is None or topic.partition(index) is None:
            return {"partition_index": index, **NO_SUCH_PARTITION.fields}
        alter = context.cluster.share_partitions.reset_offset
        alter(group.group_id, topic.topic_id, index, request.start_offset)
        group.initialized.add((topic.topic_id, index))
        return {"partition_index": index}

    partitions = [result(each) for each in requests]
    topic_id = None if topic is None or is_denied else topic.topic_id
    return {"topic_name": name, "topic_id": topic_id, "partitions": partitions}
