"""DescribeGroups 0 to 6: classic groups with their members.

Version 3 has authorized operations (KIP-430), version 4 instance ids. A group that does
not exist or is not a classic one is "Dead", and from version 6 on also an error
(KIP-1043). Metadata and protocol are returned for a stable group only.
"""

from typing import Any

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.group_checks import check_access, check_coordinator
from sharecons.testing.broker.groups.classic import ClassicGroup, State
from sharecons.testing.broker.groups.members import Member

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    include_operations = context.version >= 3 and field_or(
        request, "include_authorized_operations", False
    )
    groups = [_group(group_id, context) for group_id in request.groups]
    if include_operations:
        allowed = context.cluster.authorizer.authorized_operations
        for group in groups:
            if not group["error_code"]:
                bits = allowed("GROUP", group["group_id"])
                group["authorized_operations"] = bits
    return {"groups": groups}


def _group(group_id: str, context: Context) -> dict[str, Any]:
    try:
        check_access(context, "DESCRIBE", group_id)
        check_coordinator(context, group_id)
    except GroupError as error:
        return {"group_id": group_id, "error_code": error.code}
    group = context.cluster.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        group.advance(context.now)
        return _describe(group)
    reason = "not found" if group is None else "is not a classic group"
    return _dead(group_id, f"Group {group_id} {reason}.", context.version)


def _dead(group_id: str, message: str, version: int) -> dict[str, Any]:
    dead = {
        "group_id": group_id,
        "group_state": "Dead",
        "error_code": ErrorCode.none,
    }
    if version < 6:
        return dead
    code = ErrorCode.group_id_not_found
    return {**dead, "error_code": code, "error_message": message}


def _describe(group: ClassicGroup) -> dict[str, Any]:
    stable = group.state is State.STABLE
    protocol = group.protocol_name if stable else None
    return {
        "group_id": group.group_id,
        "error_code": ErrorCode.none,
        "group_state": str(group.state),
        "protocol_type": group.protocol_type or "",
        "protocol_data": protocol or "",
        "members": [_member(member, protocol) for member in group.members],
    }


def _member(member: Member, protocol: str | None) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_metadata": member.metadata(protocol),
        "member_assignment": member.assignment,
    }
