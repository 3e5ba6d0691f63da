"""The share partitions of all groups, and what their coordinator remembers of them."""

import uuid

__all__ = ["SharePartitions"]


class SharePartitions:
    def leader_moved(self, topic_id: uuid.UUID, partition: int) -> None:
        """Forget what the old leader kept in memory: who holds which record."""
        raise NotImplementedError
