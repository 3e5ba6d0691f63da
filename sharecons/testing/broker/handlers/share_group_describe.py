"""ShareGroupDescribe 1: members, their subscriptions and assignments (KIP-932).

A group is not described if the client is not allowed to describe all of its topics.
"""

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.group_checks import (
    check_access,
    check_coordinator,
    check_group_id,
)
from sharecons.testing.broker.handlers.share_group_heartbeat import topic_partitions
from sharecons.testing.broker.share.group import Member, ShareGroup
from sharecons.testing.broker.share_lookup import get_group

__all__ = ["handle"]

ASSIGNOR = "simple"
TOPICS_DENIED = (
    "The described group uses topics that the client is not authorized to describe."
)


async def handle(request: Request, context: Context) -> Response:
    return {"groups": [_group(each, request, context) for each in request.group_ids]}


def _group(group_id: str, request: Request, context: Context) -> Response:
    try:
        check_access(context, "DESCRIBE", group_id)
        check_group_id(group_id)
        check_coordinator(context, group_id)
        described = _describe(get_group(context, group_id), context)
    except GroupError as error:
        return {"group_id": group_id, **error.fields}
    if not request.include_authorized_operations:
        return described
    allowed = context.cluster.authorizer.authorized_operations("GROUP", group_id)
    return {**described, "authorized_operations": allowed}


def _describe(group: ShareGroup, context: Context) -> Response:
    members = [_member(member, context) for member in group.members.values()]
    if any(_is_hidden(member, context) for member in members):
        raise GroupError(ErrorCode.topic_authorization_failed, TOPICS_DENIED)
    return {
        "group_id": group.group_id,
        "group_state": group.state,
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor_name": ASSIGNOR,
        "members": members,
    }


def _member(member: Member, context: Context) -> Response:
    topics = context.cluster.topics
    # Deleted topics are left out, even if the member has not learned of it yet.
    assigned = [
        {**each, "topic_name": topic.name}
        for each in topic_partitions(member.assigned)
        if (topic := topics.by_id(each["topic_id"]))
    ]
    return {
        "member_id": member.member_id,
        "rack_id": member.rack_id,
        "member_epoch": member.epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": member.topics,
        "assignment": {"topic_partitions": assigned},
    }


def _is_hidden(member: Response, context: Context) -> bool:
    denies = context.cluster.authorizer.denies
    assigned = member["assignment"]["topic_partitions"]
    names = {
        *member["subscribed_topic_names"],
        *(each["topic_name"] for each in assigned),
    }
    return any(denies("DESCRIBE", "TOPIC", name) for name in names)
