"""JoinGroup 0 to 9: become a member of a classic group, or join its rebalance.

Version 1 has a rebalance timeout, which was the session timeout before. Version 4
assigns a new member its id, to rejoin with (KIP-394). Version 5 has static members,
identified by `group_instance_id` (KIP-345), 7 the protocol type, 8 a reason (KIP-800),
which is ignored. Since 9 a leader can skip the assignment (KIP-814).

The response waits until all members have joined.
"""

import uuid

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.group_checks import (
    check_access,
    check_coordinator,
    check_writable,
    new_group,
    wait_for_reply,
)
from sharecons.testing.broker.groups.classic import ClassicGroup, JoinRequest
from sharecons.testing.broker.groups.members import JoinResult

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    try:
        joined = await _join(request, context)
    except GroupError as error:
        joined = JoinResult(error=error.code)
    return _response(joined, context.version)


async def _join(request: Request, context: Context) -> JoinResult:
    check_access(context, "READ", request.group_id)
    if not request.group_id:
        return _error_result(ErrorCode.invalid_group_id, request)
    if not _is_session_allowed(request, context):
        return _error_result(ErrorCode.invalid_session_timeout, request)
    check_coordinator(context, request.group_id)
    group = _group(request, context)
    if group is None:
        return _error_result(ErrorCode.unknown_member_id, request)
    reply = group.join(_join_request(request, context), context.now)
    return await wait_for_reply(context, group, reply)


def _error_result(code: ErrorCode, request: Request) -> JoinResult:
    return JoinResult(error=code, member_id=request.member_id)


def _is_session_allowed(request: Request, context: Context) -> bool:
    configs = context.cluster.configs
    min_timeout = int(configs.broker_value("group.min.session.timeout.ms"))
    max_timeout = int(configs.broker_value("group.max.session.timeout.ms"))
    timeout: float = request.session_timeout.total_seconds() * 1000
    return min_timeout <= timeout <= max_timeout


def _group(request: Request, context: Context) -> ClassicGroup | None:
    """Return the group; the first member creates it.

    Raises:
        GroupError: the group is not a classic one, or cannot be written.
    """
    groups = context.cluster.groups
    found = groups.get(request.group_id)
    if found is None:
        if request.member_id:
            return None
        found = new_group(context, request.group_id)
        is_written = context.version < 4 or field_or(request, "group_instance_id", None)
        if is_written:
            check_writable(context)
        groups.add(found)
    if not isinstance(found, ClassicGroup):
        raise GroupError(ErrorCode.inconsistent_group_protocol)
    return found


def _join_request(request: Request, context: Context) -> JoinRequest:
    instance_id = field_or(request, "group_instance_id", None)
    client_id = context.header.client_id
    prefix = client_id if instance_id is None else instance_id
    session_timeout = request.session_timeout
    return JoinRequest(
        member_id=request.member_id,
        new_id=f"{prefix}-{uuid.uuid4()}",
        group_instance_id=instance_id,
        client_id=client_id,
        client_host=context.connection.peer,
        session_timeout=session_timeout.total_seconds(),
        rebalance_timeout=field_or(
            request, "rebalance_timeout", session_timeout
        ).total_seconds(),
        protocol_type=request.protocol_type,
        protocols=tuple((each.name, each.metadata) for each in request.protocols),
        id_required=context.version >= 4,
        may_skip_assignment=context.version >= 9,
    )


def _response(joined: JoinResult, version: int) -> Response:
    # Before version 7 a missing protocol is "" instead of null.
    name = joined.protocol_name if version >= 7 else joined.protocol_name or ""
    return {
        "error_code": joined.error,
        "generation_id": joined.generation_id,
        "protocol_type": joined.protocol_type,
        "protocol_name": name,
        "leader": joined.leader,
        "skip_assignment": joined.skip_assignment,
        "member_id": joined.member_id,
        "members": [member._asdict() for member in joined.members],
    }
