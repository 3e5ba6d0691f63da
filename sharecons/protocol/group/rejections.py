"""Rejections of a member by its group coordinator: their causes and errors."""

from typing import Final

from sharecons.errors import (
    AuthorizationError,
    BrokerError,
    Error,
    GroupError,
    UnsupportedVersionError,
)
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.group.messages import JOIN_EPOCH, Heartbeat, HeartbeatResponse

__all__ = [
    "SHARE_GROUPS_OFF",
    "is_other_type",
    "is_previous_member",
    "rejection_error",
]

SHARE_GROUPS_OFF: Final = (
    "share groups need Kafka 4.1 or newer, and the feature share.version, which is off "
    "at first on 4.1: `kafka-features.sh --bootstrap-server … upgrade --feature "
    "share.version=1` switches it on"
)
"""Advice for UNSUPPORTED_VERSION as the error code of a share group request."""


def is_other_type(request: Heartbeat, response: HeartbeatResponse) -> bool:
    """Return whether the id is another type's; a join creates a share group."""
    return (
        response.error == Code.GROUP_ID_NOT_FOUND and request.member_epoch == JOIN_EPOCH
    )


def is_previous_member(request: Heartbeat, response: HeartbeatResponse) -> bool:
    """Return whether the coordinator still has an earlier member with this id.

    Kafka 4.1 fences a join with an id that it knows under a later epoch. The member
    then sends a leave first, and joins again. Newer brokers accept the join.
    """
    return (
        response.error == Code.FENCED_MEMBER_EPOCH
        and request.member_epoch == JOIN_EPOCH
    )


def rejection_error(group_id: str, code: int, message: str | None) -> Error:
    """Return the error for the code and message of a coordinator's rejection."""
    reason = f"{code_name(code)}: {message}" if message else code_name(code)
    text = f"share group {group_id!r} does not admit this member: {reason}"
    name = code_name(code)
    if code == Code.UNSUPPORTED_VERSION:
        return UnsupportedVersionError(f"{text}; {SHARE_GROUPS_OFF}")
    if code in (Code.GROUP_AUTHORIZATION_FAILED, Code.TOPIC_AUTHORIZATION_FAILED):
        hint = "; the principal needs READ on the group and on its topics"
        return AuthorizationError(text + hint, code=code, name=name)
    if code in (Code.GROUP_ID_NOT_FOUND, Code.INCONSISTENT_GROUP_PROTOCOL):
        hint = "; the id belongs to a group of another kind, choose another group_id"
        return GroupError(text + hint, code=code, name=name)
    if code in (Code.INVALID_GROUP_ID, Code.GROUP_MAX_SIZE_REACHED):
        return GroupError(text, code=code, name=name)
    return BrokerError(text, code=code, name=name)
