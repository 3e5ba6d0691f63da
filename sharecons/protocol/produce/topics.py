"""The partitions of one topic, and the records that wait for its metadata."""

from collections.abc import Container, Iterator, Mapping
from typing import Final

from sharecons.errors import Error
from sharecons.protocol.admin.models import Topic
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.produce.batches import PartitionQueue, PendingRecord
from sharecons.protocol.produce.partitioner import partition_of_key

__all__ = ["TopicQueue"]

METADATA_MAX_AGE: Final = 300.0
"""Seconds; the default of metadata.max.age.ms in Kafka's producer."""


class TopicQueue:
    """One topic of a producer.

    Args:
        first_sequences: by partition, see `PartitionQueue`.
        first_partition: for records without a key, modulo the number of partitions.

    Attributes:
        leaders: nodes by partition; without those not known.
        queues: by partition.
        error: why the last request failed, for messages.
        lookup_error: why the last request of metadata failed; None if it did not.
        is_stale: the metadata must be requested.
        metadata_at: when to request it.
    """

    def __init__(
        self,
        spread: float,
        first_sequences: Mapping[int, int] | None = None,
        first_partition: int = 0,
    ) -> None:
        self.leaders: dict[int, int] = {}
        self.queues: dict[int, PartitionQueue] = {}
        self.error: Error | None = None
        self.lookup_error: Error | None = None
        self.is_stale = True
        self.metadata_at = 0.0
        self._spread = spread
        self._first_sequences = first_sequences or {}
        self._backoff = Backoff(spread)
        self._topic_id: bytes | None = None
        self._was_recreated = False
        self._partitions = 0
        self._next_partition = first_partition
        self._metadata_until = 0.0
        self._waiting: list[PendingRecord] = []

    @property
    def partitions(self) -> int:
        """The number of partitions; 0 if it is not known."""
        return self._partitions

    @property
    def is_empty(self) -> bool:
        return not self._waiting and all(q.is_empty for q in self.queues.values())

    @property
    def needs_metadata(self) -> bool:
        """True if there are records, and their leaders are not known or stale."""
        if self.is_empty:
            return False
        return (
            self.is_stale
            or bool(self._waiting)
            or any(
                partition not in self.leaders and not queue.is_empty
                for partition, queue in self.queues.items()
            )
        )

    def add(self, record: PendingRecord) -> None:
        if (record.partition or 0) < self._partitions:
            self._queue_of(record).add(record)
        else:
            self._waiting.append(record)

    def _queue_of(self, record: PendingRecord) -> PartitionQueue:
        partition = record.partition
        if partition is None:
            key = record.record.key
            if key is None:
                partition = self._partition_without_key()
            else:
                partition = partition_of_key(key, self._partitions)
        return self.queues[partition]

    def _partition_without_key(self) -> int:
        """Return the partition for records without a key; one with a leader if any."""
        if self._next_partition not in self.leaders and self.leaders:
            start, count = self._next_partition, self._partitions
            self._next_partition = min(self.leaders, key=lambda p: (p - start) % count)
        return self._next_partition

    def on_batch_taken(self, partition: int) -> None:
        """Let the next records without a key go to another partition."""
        if partition == self._next_partition:
            self._next_partition = (partition + 1) % self._partitions

    def sendable(
        self, busy: Container[int | None]
    ) -> Iterator[tuple[int, PartitionQueue]]:
        """Yield leaders that are not busy, with queues that have records for them."""
        for partition, queue in self.queues.items():
            leader = self.leaders.get(partition)
            waits = not (queue.is_empty or queue.in_flight)
            if waits and leader is not None and leader not in busy:
                yield leader, queue

    def deadlines(self) -> Iterator[float]:
        """Yield when the next records expire."""
        yield from (record.deadline for record in self._waiting[:1])
        for queue in self.queues.values():
            if not (queue.is_empty or queue.in_flight):
                yield queue.next_deadline()

    def expire(self, now: float) -> list[PendingRecord]:
        """Remove the records whose deadlines have passed, except records in flight."""
        expired = [each for each in self._waiting if now >= each.deadline]
        if expired:
            self._waiting = [each for each in self._waiting if now < each.deadline]
        for queue in self.queues.values():
            expired += queue.expire(now)
        return expired

    def remove_all(self) -> list[PendingRecord]:
        """Remove all records but those in flight."""
        removed, self._waiting = self._waiting, []
        for queue in self.queues.values():
            removed += queue.remove_all()
        return removed

    # Metadata.

    def refresh_metadata(self, now: float) -> bool:
        """Request old metadata again, as the topic can have more partitions now.

        Return whether nothing has needed it since it became old the last time.
        """
        if now < self._metadata_until:
            return False
        self._metadata_until = now + METADATA_MAX_AGE
        was_stale, self.is_stale = self.is_stale, True
        return was_stale and self.is_empty

    def mark_stale(self, now: float) -> None:
        """Request metadata again: a leader might have changed."""
        if not self.is_stale:
            self.is_stale = True
            self.metadata_at = now + self._backoff.next_delay()

    def on_leader_failed(self, node_id: int | None, now: float) -> None:
        """Send nothing to a leader that has not responded, until it is looked up."""
        self.leaders = {p: node for p, node in self.leaders.items() if node != node_id}
        self.mark_stale(now)

    def on_lookup_failed(self, error: Error, now: float) -> None:
        self.error = self.lookup_error = error
        self.is_stale = True
        self.metadata_at = now + self._backoff.next_delay()

    def on_described(self, topic: Topic, now: float) -> list[PendingRecord]:
        """Use new metadata; return waiting records whose partition does not exist."""
        self.lookup_error = None
        self._metadata_until = now + METADATA_MAX_AGE
        # Partitions are never removed, but a new topic can have the same name.
        if topic.topic_id != self._topic_id:
            self._was_recreated = self._topic_id is not None
            self._topic_id = topic.topic_id
        self._partitions = max(topic.partitions, default=-1) + 1
        self.leaders = {
            partition: info.leader
            for partition, info in topic.partitions.items()
            if info.leader is not None
        }
        for partition in range(self._partitions):
            if partition not in self.queues:
                first = self._first_sequences.get(partition, 0)
                self.queues[partition] = PartitionQueue(partition, self._spread, first)
        self._next_partition %= max(1, self._partitions)
        missing = []
        waiting, self._waiting = self._waiting, []
        if self._was_recreated:
            waiting[:0] = self._records_without_partition()
        for record in waiting:
            if not self._partitions:
                self._waiting.append(record)
            elif (record.partition or 0) >= self._partitions:
                missing.append(record)
            else:
                self._queue_of(record).add(record)
        if self.needs_metadata:
            self.metadata_at = now + self._backoff.next_delay()
        else:
            self._backoff.reset()
        return missing

    def _records_without_partition(self) -> list[PendingRecord]:
        """Remove the records of partitions that the new topic does not have.

        Another partition can be chosen for a record that is in no log. Records that
        the leader might have stay, until their deadlines.
        """
        return [
            record
            for partition, queue in self.queues.items()
            if partition >= self._partitions
            for record in queue.remove_unwritten()
        ]
