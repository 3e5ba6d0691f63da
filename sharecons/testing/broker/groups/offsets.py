"""The committed offsets of a group, and the pending ones of transactions.

Offsets of an open transaction are pending: invisible, except to requests for stable
offsets (KIP-447). They are committed with the transaction, unless a later commit has
set the partition's offset meanwhile; the order of the commit requests counts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["GroupOffsets", "Offset", "TopicPartition"]

TopicPartition: TypeAlias = tuple[str, int]
"""A topic's name and a partition index."""


@dataclass(frozen=True, slots=True)
class Offset:
    """A committed offset."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    committed_at: float = 0.0
    """Seconds on the clock of the event loop."""
    expires_at: float | None = None
    """If the commit has set its own retention time; see `committed_at`."""


@dataclass(slots=True)
class GroupOffsets:
    """The offsets of one group, by topic and partition."""

    _committed: dict[TopicPartition, tuple[int, Offset]] = field(default_factory=dict)
    _pending: dict[int, dict[TopicPartition, tuple[int, Offset]]] = field(
        default_factory=dict
    )
    _commits: int = 0

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(list(self._committed))

    @property
    def is_empty(self) -> bool:
        """Return whether there are no offsets, not even pending ones."""
        return not (self._committed or any(self._pending.values()))

    def commit(self, offsets: Mapping[TopicPartition, Offset]) -> None:
        self._commits += 1
        for topic_partition, offset in offsets.items():
            self._committed[topic_partition] = self._commits, offset

    def add_pending(
        self, producer_id: int, offsets: Mapping[TopicPartition, Offset]
    ) -> None:
        """Store offsets until the producer's transaction ends."""
        self._commits += 1
        pending = self._pending.setdefault(producer_id, {})
        for topic_partition, offset in offsets.items():
            pending[topic_partition] = self._commits, offset

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """Commit or discard the pending offsets of a producer."""
        for topic_partition, (number, offset) in self._pending.pop(
            producer_id, {}
        ).items():
            before, _ = self._committed.get(topic_partition, (0, None))
            if committed and before < number:
                self._committed[topic_partition] = number, offset

    def get(self, topic_partition: TopicPartition) -> Offset | None:
        found = self._committed.get(topic_partition)
        return None if found is None else found[1]

    def is_pending(self, topic_partition: TopicPartition) -> bool:
        return any(topic_partition in pending for pending in self._pending.values())

    def delete(self, topic_partition: TopicPartition) -> None:
        self._committed.pop(topic_partition, None)
        for pending in self._pending.values():
            pending.pop(topic_partition, None)

    def delete_topic(self, topic: str) -> None:
        for topic_partitions in (self._committed, *self._pending.values()):
            for topic_partition in [
                topic_partition
                for topic_partition in topic_partitions
                if topic_partition[0] == topic
            ]:
                del topic_partitions[topic_partition]
