"""A share group's members and what they are assigned (KIP-932, "Group membership")."""

__all__ = ["ShareGroup"]


class ShareGroup:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
