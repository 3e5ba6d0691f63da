"""Heartbeat 0 to 4: stay a member of a classic group; version 3 has static members.

By an error of its response a member learns that the group rebalances, and rejoins.
"""

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.group_checks import member_group

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    try:
        member_group(context, request.group_id).heartbeat(
            request.member_id,
            field_or(request, "group_instance_id", None),
            request.generation_id,
            context.now,
        )
    except GroupError as error:
        return {"error_code": error.code}
    return {"error_code": ErrorCode.none}
