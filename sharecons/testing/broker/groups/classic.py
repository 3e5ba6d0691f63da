"""A classic consumer group: members, generations, rebalances, committed offsets."""

__all__ = ["ClassicGroup"]


class ClassicGroup:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
