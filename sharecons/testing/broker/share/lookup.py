"""Finding a share group for a handler: a group id may be another kind's."""

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.groups.errors import GroupError
from sharecons.testing.broker.share.group import ShareGroup

__all__ = ["existing_group", "possible_group"]


def possible_group(context: Context, group_id: str) -> ShareGroup | None:
    """Give a share group as of now, or None if the id is free.

    Raises:
        GroupError: it is the id of a classic group.
    """
    group = context.cluster.groups.get(group_id)
    if group is None:
        return None
    if not isinstance(group, ShareGroup):
        message = f"Group {group_id} is not a share group."
        raise GroupError(ErrorCode.group_id_not_found, message)
    group.advance(context.now)
    return group


def existing_group(context: Context, group_id: str, what: str = "Group") -> ShareGroup:
    """Give a share group as of now.

    Raises:
        GroupError: there is none.
    """
    group = possible_group(context, group_id)
    if group is None:
        message = f"{what} {group_id} not found."
        raise GroupError(ErrorCode.group_id_not_found, message)
    return group
