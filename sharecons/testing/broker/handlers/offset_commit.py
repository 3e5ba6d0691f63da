"""OffsetCommit 2 to 10: commit a group's offsets, with leader epochs and metadata.

Topics by name up to version 9, by id from version 10. Members commit in their
generation. With generation -1, clients commit for a group without members, which need
not exist yet. A generation of a group that does not exist is GROUP_ID_NOT_FOUND since
version 9, before that ILLEGAL_GENERATION (KIP-848).
"""

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.group_checks import check_access, check_coordinator
from sharecons.testing.broker.group_commits import (
    NO_RETENTION_TIME,
    commit_each,
    get_or_create_group,
)
from sharecons.testing.broker.groups.classic import ClassicGroup
from sharecons.testing.broker.offset_partitions import same_error

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    try:
        check_access(context, "READ", request.group_id)
    except GroupError as error:
        return {"topics": same_error(request.topics, error.code)}
    results = commit_each(
        context,
        request.topics,
        get_group=lambda: _group(request, context),
        store=lambda group, offsets: group.offsets.commit(offsets),
        retention=field_or(request, "retention_time", NO_RETENTION_TIME),
    )
    return {"topics": results}


def _group(request: Request, context: Context) -> ClassicGroup:
    """Return the group to commit to.

    Raises:
        GroupError: the commit is rejected.
    """
    check_coordinator(context, request.group_id)
    generation_id: int = request.generation_id_or_member_epoch
    is_old = context.version < 9
    group = get_or_create_group(
        context,
        request.group_id,
        named=generation_id >= 0,
        missing=ErrorCode.illegal_generation
        if is_old
        else ErrorCode.group_id_not_found,
    )
    instance_id = field_or(request, "group_instance_id", None)
    group.check_commit(request.member_id, instance_id, generation_id, context.now)
    return group
