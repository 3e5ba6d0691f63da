"""ShareGroupHeartbeat 1: join a share group, stay in it, leave it (KIP-932).

Member epoch 0 joins, and creates the group if necessary; -1 leaves; others must be the
member's. The subscription is sent when joining; later, null means unchanged. If one
topic is denied, the heartbeat is rejected and has no effect. A topic that does not
exist is assigned once it does.
"""

from collections.abc import Iterable
from typing import Final

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.coordinators import SHARE
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.group_checks import (
    check_access,
    check_coordinator,
    check_writable,
)
from sharecons.testing.broker.internal_topics import ensure_state_topic
from sharecons.testing.broker.share.assignor import Assignment, TopicPartition
from sharecons.testing.broker.share.group import (
    JOIN,
    LEAVE,
    Heartbeat,
    HeartbeatResult,
    Limits,
    ShareGroup,
)
from sharecons.testing.broker.share_lookup import find_group, get_group

__all__ = ["handle", "topic_partitions"]

MAX_MEMBER_ID_LENGTH: Final = 36


async def handle(request: Request, context: Context) -> Response:
    try:
        _check_permissions(request, context)
        _check_fields(request)
        check_coordinator(context, request.group_id)
        if request.member_epoch in (JOIN, LEAVE):
            check_writable(context)
        if request.member_epoch == LEAVE:
            return _leave(request, context)
        return _stay(request, context)
    except GroupError as error:
        return error.fields


def topic_partitions(assignment: Iterable[TopicPartition]) -> list[Response]:
    """Return an assignment as in responses: the partitions of each topic."""
    by_topic: dict[object, list[int]] = {}
    for topic_id, partition in sorted(assignment):
        by_topic.setdefault(topic_id, []).append(partition)
    return [
        {"topic_id": topic_id, "partitions": partitions}
        for topic_id, partitions in by_topic.items()
    ]


def _check_permissions(request: Request, context: Context) -> None:
    check_access(context, "READ", request.group_id)
    denies = context.cluster.authorizer.denies
    for topic in request.subscribed_topic_names or ():
        if denies("DESCRIBE", "TOPIC", topic):
            raise GroupError(ErrorCode.topic_authorization_failed)


def _check_fields(request: Request) -> None:
    code = ErrorCode.invalid_request
    if not 0 < len(request.member_id) <= MAX_MEMBER_ID_LENGTH:
        raise GroupError(code)
    if not request.group_id:
        raise GroupError(code, "GroupId can't be empty.")
    if request.rack_id == "":
        raise GroupError(code, "RackId can't be empty.")
    if request.member_epoch < LEAVE:
        raise GroupError(code, "MemberEpoch is invalid.")
    if request.member_epoch == JOIN and not request.subscribed_topic_names:
        raise GroupError(code, "SubscribedTopicNames must be set in first request.")


def _leave(request: Request, context: Context) -> Response:
    group = get_group(context, request.group_id)
    group.leave(request.member_id, context.now)
    return {"member_id": request.member_id, "member_epoch": LEAVE}


def _stay(request: Request, context: Context) -> Response:
    group = _group(request, context)
    result = _heartbeat(group, request, context)
    interval = _seconds(context, request.group_id, "share.heartbeat.interval.ms")
    response: Response = {
        "member_id": request.member_id,
        "member_epoch": result.member_epoch,
        "heartbeat_interval": interval,
    }
    if result.assignment is None:
        return response
    assigned = {"topic_partitions": topic_partitions(result.assignment)}
    return {**response, "assignment": assigned}


def _group(request: Request, context: Context) -> ShareGroup:
    if request.member_epoch != JOIN:
        return get_group(context, request.group_id, "Share group")
    group = find_group(context, request.group_id)
    if group is None:
        group = ShareGroup(request.group_id)
        context.cluster.groups.add(group)
    return group


def _heartbeat(
    group: ShareGroup, request: Request, context: Context
) -> HeartbeatResult:
    cluster = context.cluster
    heartbeat = Heartbeat(
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        rack_id=request.rack_id,
        topics=request.subscribed_topic_names,
        client_id=context.header.client_id,
        client_host=context.connection.peer,
    )
    limits = Limits(
        session_timeout=_seconds(context, group.group_id, "share.session.timeout.ms"),
        assignment_interval=_seconds(
            context, group.group_id, "share.assignment.interval.ms"
        ),
        max_size=int(cluster.configs.broker_value("group.share.max.size")),
    )
    result = group.heartbeat(heartbeat, cluster.topics, limits, context.now)
    _initialize(group, result.initialized, context)
    return result


def _initialize(group: ShareGroup, partitions: Assignment, context: Context) -> None:
    """Initialise the state of partitions; the next heartbeat tries it again."""
    cluster = context.cluster
    if partitions and not ensure_state_topic(cluster, SHARE):
        group.initialized -= partitions
        return
    for topic_id, partition in partitions:
        cluster.share_partitions.initialize(group.group_id, topic_id, partition)


def _seconds(context: Context, group_id: str, name: str) -> float:
    return int(context.cluster.configs.group_value(group_id, name)) / 1000
