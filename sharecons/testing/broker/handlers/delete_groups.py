"""DeleteGroups 0 to 2: delete groups of any kind, with their offsets.

Groups with members are not deleted. A share group's share partitions are deleted as
well.
"""

from typing import Any

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.group_checks import (
    check_access,
    check_coordinator,
    check_writable,
)
from sharecons.testing.broker.groups.classic import ClassicGroup

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    wanted = dict.fromkeys(request.groups_names)
    return {"results": [_result(group_id, context) for group_id in wanted]}


def _result(group_id: str, context: Context) -> dict[str, Any]:
    code = ErrorCode.none
    try:
        _delete(group_id, context)
    except GroupError as error:
        code = error.code
    return {"group_id": group_id, "error_code": code}


def _delete(group_id: str, context: Context) -> None:
    cluster = context.cluster
    check_access(context, "DELETE", group_id)
    check_coordinator(context, group_id)
    check_writable(context)
    group = cluster.groups.get(group_id)
    if group is None:
        raise GroupError(ErrorCode.group_id_not_found)
    group.advance(context.now)
    if isinstance(group, ClassicGroup):
        group.check_delete()
    elif group.state != "Empty":
        raise GroupError(ErrorCode.non_empty_group)
    else:
        cluster.share_partitions.delete_group(group_id)
    cluster.groups.remove(group_id)
