"""DeleteShareGroupOffsets 0: delete an empty group's offsets of topics (KIP-932).

Each topic has its own result: it might not exist, or have no offsets. The next
member starts where the group's settings say.
"""

from typing import Final

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import (
    NO_SUCH_PARTITION,
    TOPIC_DENIED,
    GroupError,
    RequestError,
)
from sharecons.testing.broker.group_checks import (
    check_access,
    check_coordinator,
    check_writable,
)
from sharecons.testing.broker.handlers.alter_share_group_offsets import (
    INVALID_ID,
    NOT_EMPTY,
)
from sharecons.testing.broker.share.group import ShareGroup
from sharecons.testing.broker.share_lookup import get_group

__all__ = ["handle"]

NO_OFFSETS: Final = RequestError(
    ErrorCode.unknown_topic_or_partition, "There is no offset information to delete."
)


async def handle(request: Request, context: Context) -> Response:
    try:
        group = _group(request.group_id, context)
    except GroupError as error:
        return error.fields
    names = dict.fromkeys(topic.topic_name for topic in request.topics)
    return {"responses": [_topic(name, group, context) for name in names]}


def _group(group_id: str, context: Context) -> ShareGroup:
    check_access(context, "DELETE", group_id)
    if not group_id:
        raise GroupError(ErrorCode.invalid_group_id, INVALID_ID)
    check_coordinator(context, group_id)
    check_writable(context)
    group = get_group(context, group_id)
    if group.members:
        raise GroupError(ErrorCode.non_empty_group, NOT_EMPTY)
    return group


def _topic(name: str, group: ShareGroup, context: Context) -> Response:
    cluster = context.cluster
    if cluster.authorizer.denies("READ", "TOPIC", name):
        return {"topic_name": name, **TOPIC_DENIED.fields}
    topic = cluster.topics.by_name(name)
    if topic is None:
        return {"topic_name": name, **NO_SUCH_PARTITION.fields}
    known = [each for each in group.initialized if each[0] == topic.topic_id]
    if not known:
        return {"topic_name": name, **NO_OFFSETS.fields}
    for topic_id, partition in known:
        cluster.share_partitions.delete(group.group_id, topic_id, partition)
    group.initialized.difference_update(known)
    return {"topic_name": name, "topic_id": topic.topic_id}
