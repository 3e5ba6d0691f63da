"""Lookup of a share group by a handler; the id can belong to a classic group."""

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.share.group import ShareGroup

__all__ = ["find_group", "get_group"]


def find_group(context: Context, group_id: str) -> ShareGroup | None:
    """Return a share group, or None if the id is unused.

    Raises:
        GroupError: the id belongs to a classic group.
    """
    group = context.cluster.groups.get(group_id)
    if group is None:
        return None
    if not isinstance(group, ShareGroup):
        message = f"Group {group_id} is not a share group."
        raise GroupError(ErrorCode.group_id_not_found, message)
    group.advance(context.now)
    return group


def get_group(context: Context, group_id: str, label: str = "Group") -> ShareGroup:
    """Return a share group.

    Raises:
        GroupError: there is no such share group.
    """
    group = find_group(context, group_id)
    if group is None:
        message = f"{label} {group_id} not found."
        raise GroupError(ErrorCode.group_id_not_found, message)
    return group
