"""SyncGroup 0 to 5: get a member's assignment; the leader sends all assignments.

Version 3 has static members (KIP-345). Since version 5 the protocol must be named, so
that a client with another one gets an error (KIP-559). Followers wait for the leader.
"""

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.group_checks import member_group, wait_for_reply
from sharecons.testing.broker.groups.classic import SyncRequest
from sharecons.testing.broker.groups.members import SyncResult

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    try:
        synced = await _sync(request, context)
    except GroupError as error:
        synced = SyncResult(error=error.code)
    return {
        "error_code": synced.error,
        "protocol_type": synced.protocol_type,
        "protocol_name": synced.protocol_name,
        "assignment": synced.assignment,
    }


async def _sync(request: Request, context: Context) -> SyncResult:
    requested = _sync_request(request)
    if context.version >= 5 and None in (
        requested.protocol_type,
        requested.protocol_name,
    ):
        raise GroupError(ErrorCode.inconsistent_group_protocol)
    group = member_group(context, request.group_id)
    return await wait_for_reply(context, group, group.sync(requested, context.now))


def _sync_request(request: Request) -> SyncRequest:
    return SyncRequest(
        member_id=request.member_id,
        group_instance_id=field_or(request, "group_instance_id", None),
        generation_id=request.generation_id,
        protocol_type=field_or(request, "protocol_type", None),
        protocol_name=field_or(request, "protocol_name", None),
        assignments={each.member_id: each.assignment for each in request.assignments},
    )
