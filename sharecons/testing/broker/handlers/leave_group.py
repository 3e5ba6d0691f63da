"""LeaveGroup 0 to 5: leave a classic group, or remove other members from it.

One member up to version 2, whose error is the response's; several since 3, each with
its own error, by member id or by instance id alone (KIP-345). Reasons, which exist
since version 5 (KIP-800), are ignored.
"""

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.group_checks import member_group

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    leaving = _leaving_members(request)
    try:
        group = member_group(context, request.group_id)
        codes: list[ErrorCode] = group.leave(leaving, context.now)
    except GroupError as error:
        # If the group does not exist, every member is unknown.
        if error.code is not ErrorCode.unknown_member_id:
            return {"error_code": error.code}
        codes = [error.code] * len(leaving)
    if context.version < 3:
        return {"error_code": codes[0]}
    return {
        "members": [
            {
                "member_id": member_id,
                "group_instance_id": group_instance_id,
                "error_code": code,
            }
            for (member_id, group_instance_id), code in zip(leaving, codes, strict=True)
        ]
    }


def _leaving_members(request: Request) -> list[tuple[str, str | None]]:
    members = field_or(request, "members", None)
    if members is None:
        return [(request.member_id, None)]
    return [(each.member_id, each.group_instance_id) for each in members]
