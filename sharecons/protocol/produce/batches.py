"""The records of one partition: pending ones, and one batch that is sent.

A leader counts the batches of a producer by their sequence numbers, and so appends a
batch once, however often it is sent (KIP-98, "Idempotent Producer Guarantees"). For
this, one batch of a partition is in flight at a time, and a batch that is sent again
has the same bytes. After a batch with an unknown outcome has failed, the next one must
not have its sequence number: the leader might take it for the same. So the partition
then uses a new producer id.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final, final

from sharecons.protocol.backoff import Backoff
from sharecons.protocol.produce.messages import ProducerIdentity
from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode

__all__ = ["MAX_BATCH_SIZE", "Batch", "PartitionQueue", "PendingRecord", "record_size"]

MAX_BATCH_SIZE: Final = 1_000_000
"""Bytes of the records in a batch, below the topic default of max.message.bytes."""

OVERHEAD: Final = 32
"""Bytes of a record besides its key, value and headers, at most."""

SEQUENCE_LIMIT: Final = 1 << 31


@final
class PendingRecord:
    """A record to be produced.

    Attributes:
        topic, partition: where; a partition of None is chosen by the key.
        record: key, value, headers and timestamp.
        deadline: when it fails if it is not confirmed.
        size: its approximate bytes in a batch.
        was_sent: the leader might have it.
    """

    __slots__ = ("deadline", "partition", "record", "size", "topic", "was_sent")

    def __init__(
        self, topic: str, record: NewRecord, deadline: float, partition: int | None
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.record = record
        self.deadline = deadline
        self.was_sent = False
        self.size = record_size(record)


def record_size(record: NewRecord) -> int:
    """Return the approximate bytes of a record in a batch."""
    return (
        OVERHEAD
        + len(record.key or b"")
        + len(record.value or b"")
        + sum(len(name) + len(value or b"") + 10 for name, value in record.headers)
    )


@final
class Batch:
    """Records that are sent together.

    Attributes:
        is_uncertain: it was sent, and it is not known whether the leader has it.
    """

    __slots__ = ("data", "is_uncertain", "records")

    def __init__(
        self,
        records: Sequence[PendingRecord],
        identity: ProducerIdentity,
        base_sequence: int,
        compression: Codec,
    ) -> None:
        self.records = records
        self.is_uncertain = False
        self.data = encode(
            [each.record for each in records],
            compression=compression,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=base_sequence,
        )

    @property
    def deadline(self) -> float:
        """When the first of its records fails if it is not confirmed."""
        return min(each.deadline for each in self.records)


@final
class PartitionQueue:
    """The records of one partition.

    Args:
        first_sequence: the sequence number of the first batch, if another process has
            written batches with the same producer id before.

    Attributes:
        partition: its number.
        batch: the batch that is in flight, or will be sent again.
        in_flight: the batch is in flight.
        identity: the producer id of the batches, or None.
        spent: the abandoned producer id; the next one must be another.
        not_before: when the next request can be sent.
        backoff: of failures since the last success.
    """

    def __init__(self, partition: int, spread: float, first_sequence: int = 0) -> None:
        self.partition = partition
        self.batch: Batch | None = None
        self.in_flight = False
        self.identity: ProducerIdentity | None = None
        self.spent: ProducerIdentity | None = None
        self.not_before = 0.0
        self.backoff = Backoff(spread)
        self._pending: deque[PendingRecord] = deque()
        self._first_sequence = first_sequence
        self._next_sequence = 0
        self._limit = 0  # records in the next batch, if the last one was too large

    @property
    def is_empty(self) -> bool:
        return self.batch is None and not self._pending

    def add(self, record: PendingRecord) -> None:
        self._pending.append(record)

    def next_batch(self, identity: ProducerIdentity, compression: Codec) -> Batch:
        """Return the batch to send: a failed batch again, or the next batch.

        `identity` is used if the partition has none.
        """
        if self.batch is None:
            if self.identity is None:
                self.identity = identity
                self._next_sequence, self._first_sequence = self._first_sequence, 0
            records = self._take_pending()
            self.batch = Batch(records, self.identity, self._next_sequence, compression)
        self.in_flight = True
        return self.batch

    def _take_pending(self) -> list[PendingRecord]:
        taken = [self._pending.popleft()]
        size = taken[0].size
        while self._pending and size + self._pending[0].size <= MAX_BATCH_SIZE:
            if len(taken) == self._limit:
                break
            size += self._pending[0].size
            taken.append(self._pending.popleft())
        return taken

    def on_appended(self) -> Sequence[PendingRecord]:
        """Remove the batch, which the leader has; return its records."""
        records = self._remove_batch()
        self._next_sequence = (self._next_sequence + len(records)) % SEQUENCE_LIMIT
        self._limit = 0
        self.backoff.reset()
        return records

    def on_rejected(self) -> Sequence[PendingRecord]:
        """Remove the batch, which the leader has rejected; return its records."""
        return self._give_up_batch()

    def on_failed(self, now: float, *, is_uncertain: bool = True) -> None:
        """Send the batch again after the backoff.

        Args:
            is_uncertain: the leader might have it.
        """
        assert self.batch is not None, "it was sent"
        if is_uncertain:
            self.batch.is_uncertain = True
            for record in self.batch.records:
                record.was_sent = True
        self.in_flight = False
        self.not_before = now + self.backoff.next_delay()

    def split(self) -> bool:
        """Return the records of a rejected batch to the queue, for smaller batches.

        Returns False, and changes nothing, if it is a single record, or if the leader
        might have the batch, so that its records would be written twice.
        """
        assert self.batch is not None, "it was sent"
        records = self.batch.records
        if len(records) == 1 or self.batch.is_uncertain:
            return False
        self._limit = (len(records) + 1) // 2
        self._return_to_queue()
        return True

    def restart(self, now: float) -> bool:
        """Send the records of a rejected batch again, under another producer id.

        Returns False, and sends nothing, if the leader might have the batch: with
        another id it would not recognize it.
        """
        assert self.batch is not None, "it was sent"
        self._give_up_identity()
        if self.batch.is_uncertain:
            return False
        self._return_to_queue()
        self.not_before = now + self.backoff.next_delay()
        return True

    def expire(self, now: float) -> list[PendingRecord]:
        """Remove the records whose deadlines have passed, except records in flight."""
        expired: list[PendingRecord] = []
        if self.in_flight:
            return expired
        if self.batch is not None and now >= self.batch.deadline:
            expired += self._give_up_batch()
        while self._pending and now >= self._pending[0].deadline:
            expired.append(self._pending.popleft())
        return expired

    def next_deadline(self) -> float:
        """Return when the next record expires."""
        if self.batch is not None:
            return self.batch.deadline
        return self._pending[0].deadline

    def remove_all(self) -> list[PendingRecord]:
        """Remove all records but those in flight."""
        removed: list[PendingRecord] = []
        if self.batch is not None and not self.in_flight:
            removed += self._give_up_batch()
        return removed + self._remove_pending()

    def remove_unwritten(self) -> list[PendingRecord]:
        """Remove the records that no leader can have."""
        removed: list[PendingRecord] = []
        batch = self.batch
        if batch is not None and not (self.in_flight or batch.is_uncertain):
            removed += self._give_up_batch()
        return removed + self._remove_pending()

    def _remove_pending(self) -> list[PendingRecord]:
        removed = list(self._pending)
        self._pending.clear()
        return removed

    def _remove_batch(self) -> Sequence[PendingRecord]:
        assert self.batch is not None, "it was sent"
        records = self.batch.records
        self.batch = None
        self.in_flight = False
        return records

    def _give_up_batch(self) -> Sequence[PendingRecord]:
        """Remove the batch; another one can have its number only if it was rejected."""
        if self.batch is not None and self.batch.is_uncertain:
            self._give_up_identity()
        return self._remove_batch()

    def _give_up_identity(self) -> None:
        if self.identity is not None:
            self.identity, self.spent = None, self.identity

    def _return_to_queue(self) -> None:
        self._pending.extendleft(reversed(self._give_up_batch()))
