"""The groups of the cluster; a group id belongs to one kind of group at a time."""

from collections.abc import Iterator

from sharecons.testing.broker.groups.classic import ClassicGroup
from sharecons.testing.broker.share.group import ShareGroup

__all__ = ["Group", "Groups"]

Group = ClassicGroup | ShareGroup


class Groups:
    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._groups.values()))

    def get(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def classic(self, group_id: str) -> ClassicGroup | None:
        """Return a classic group, or None."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def share(self, group_id: str) -> ShareGroup:
        """Return a share group.

        Raises:
            LookupError: it does not exist; the message lists the groups that do.
        """
        group = self._groups.get(group_id)
        if isinstance(group, ShareGroup):
            return group
        names = sorted(
            name for name, each in self._groups.items() if isinstance(each, ShareGroup)
        )
        existing = (
            f"the share groups are {', '.join(map(repr, names))}"
            if names
            else "no consumer has joined a share group"
        )
        raise LookupError(f"share group {group_id!r} does not exist; {existing}")

    def advance_classic(self, group_id: str, now: float) -> None:
        """Apply what has become due in a classic group; remove it if it has expired."""
        group = self.classic(group_id)
        if group is not None:
            group.advance(now)
            if group.is_deleted:
                self.remove(group_id)

    def add(self, group: Group) -> None:
        self._groups[group.group_id] = group

    def remove(self, group_id: str) -> None:
        self._groups.pop(group_id, None)

    def delete_topic(self, topic: str) -> None:
        """Delete the committed offsets of a deleted topic."""
        for group in self._groups.values():
            if isinstance(group, ClassicGroup):
                group.offsets.delete_topic(topic)
