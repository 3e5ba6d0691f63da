"""The log of one partition: batches as producers wrote them, with their offsets.

Nothing is compacted, and nothing expires: records are only deleted on request. Appended
records are visible immediately, since there is no replication to wait for.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.log.batches import (
    AppendError,
    BatchHeader,
    decode_header,
    encode_marker,
    finalize,
    split_batches,
)
from sharecons.testing.broker.log.producers import Appended, LogProducer
from sharecons.testing.broker.log.rules import LogRules, check_batch
from sharecons.testing.broker.log.stored_batch import StoredBatch, heads_of, stored
from sharecons.testing.broker.signals import Signal

__all__ = [
    "AppendError",
    "Appended",
    "LogPosition",
    "LogRules",
    "PartitionLog",
    "StoredBatch",
]

DEFAULTS: Final = LogRules()


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A record, or an end of the log, that was looked up."""

    offset: int
    timestamp: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """An aborted transaction, which consumers of committed records skip."""

    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of its marker."""


class PartitionLog:
    """A log and its offsets.

    `start_offset` is the first offset that still exists, `end_offset` the next one (and
    the high watermark: a batch is replicated once it is appended), and
    `last_stable_offset` the first offset of an open transaction, or the end.
    """

    def __init__(self) -> None:
        self.start_offset = 0
        self.end_offset = 0
        self.last_stable_offset = 0
        self.changed = Signal()
        """Notified when one of the three has changed."""
        self._batches: list[StoredBatch] = []
        self._producers: dict[int, LogProducer] = {}
        self._open_transactions: dict[
            int, int
        ] = {}  # transactions: producer ids, first offsets
        self._aborted: list[AbortedTransaction] = []

    def append(
        self,
        data: bytes,
        now_ms: int,
        *,
        leader_epoch: int = 0,
        rules: LogRules = DEFAULTS,
        transaction_version: int = 0,
    ) -> Appended:
        """Append one or more batches that a client has sent; return the last one.

        The coordinator must know the transaction of a batch. `transaction_version` says
        how it does: 1 by AddPartitionsToTxn, 2 by the leader (KIP-890), 0 not at all,
        which is enough if the transaction is already open in this log.

        Raises:
            AppendError: a batch is rejected; those before it have been appended.
        """
        batches = split_batches(data)
        if not batches:
            raise AppendError(ErrorCode.invalid_record, "There is no record batch")
        append_time = now_ms if rules.log_append_time else None
        appended: list[Appended] = []
        for batch in batches:
            header = decode_header(batch)
            check_batch(batch, header, rules, now_ms)
            appended.append(
                self._append(
                    batch, header, leader_epoch, append_time, transaction_version
                )
            )
        return appended[-1]

    def load(self, data: bytes) -> None:
        """Append a part of another broker's log: batches with their offsets.

        It can contain messages of formats 0 and 1, and gaps as after compaction.

        Raises:
            ValueError: a batch is damaged or incomplete, or its offsets are already in
                the log.
        """
        try:
            batches = split_batches(data)
        except AppendError as error:
            raise ValueError(str(error)) from None
        if rest := len(data) - sum(map(len, batches)):
            raise ValueError(f"the last {rest} bytes are no complete batch")
        for batch in map(stored, batches):
            if batch.base_offset < self.end_offset:
                raise ValueError(
                    f"offset {batch.base_offset} is before the end of the log, "
                    f"{self.end_offset}"
                )
            self._batches.append(batch)
            self.end_offset = batch.last_offset + 1
        self._update()

    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        now_ms: int,
        leader_epoch: int = 0,
    ) -> Appended:
        """Append the marker that ends a transaction, even one without records."""
        batch = encode_marker(producer_id, producer_epoch, committed, now_ms)
        appended = self._store(batch, leader_epoch, None)
        producer = self._producers.setdefault(producer_id, LogProducer(producer_id))
        producer.note_marker(producer_epoch)
        started = self._open_transactions.pop(producer_id, None)
        if started is not None and not committed:
            self._aborted.append(
                AbortedTransaction(producer_id, started, appended.last_offset)
            )
        self._update()
        return appended

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        producer = self._producers.get(producer_id)
        return producer is not None and producer.has_open_transaction(producer_epoch)

    def batches(
        self,
        first_offset: int,
        last_offset_exclusive: int,
        max_bytes: int,
        *,
        at_least_one: bool = True,
    ) -> list[StoredBatch]:
        """Return whole batches, beginning with `first_offset`'s, in `max_bytes`.

        The first is returned even if it is larger, unless `at_least_one` is False.
        """
        found: list[StoredBatch] = []
        for batch in self._batches_from(first_offset):
            if batch.base_offset >= last_offset_exclusive:
                break
            max_bytes -= len(batch.data)
            if max_bytes < 0 and (found or not at_least_one):
                break
            found.append(batch)
        return found

    def read(
        self,
        first_offset: int,
        last_offset_exclusive: int,
        max_bytes: int,
        *,
        first_whole: bool,
    ) -> bytes:
        """Return batches as a slice of a file: the last one can be incomplete.

        The first batch is never cut: with `first_whole` it is returned even if it is
        larger than `max_bytes`, else it is left out. (In Kafka, a log has several
        files, and a slice also ends with its file.)
        """
        data = bytearray()
        for batch in self._batches_from(first_offset):
            if batch.base_offset >= last_offset_exclusive:
                break
            if not data and len(batch.data) > max_bytes:
                return batch.data if first_whole else b""
            data += batch.data[: max_bytes - len(data)]
            if len(data) == max_bytes:
                break
        return bytes(data)

    def aborted(self, first_offset: int, upto: int) -> list[tuple[int, int]]:
        """Return the aborted transactions of a range: producer ids, first offsets."""
        return [
            (each.producer_id, each.first_offset)
            for each in self._aborted
            if each.last_offset >= first_offset and each.first_offset < upto
        ]

    def truncate_before(self, offset: int) -> None:
        """Delete the records before an offset.

        As in Kafka, a batch that also has later records stays whole.
        """
        if offset <= self.start_offset:
            return
        self.start_offset = min(offset, self.end_offset)
        kept = bisect_right(
            self._batches, self.start_offset - 1, key=attrgetter("last_offset")
        )
        del self._batches[:kept]
        self._aborted = [
            each for each in self._aborted if each.last_offset >= self.start_offset
        ]
        self._update()

    def find_timestamp(self, timestamp: int) -> LogPosition | None:
        """Return the first record with this timestamp or a later one."""
        for batch in self._batches_from(self.start_offset):
            if batch.max_timestamp >= timestamp:
                for found in self._records(batch):
                    if found.timestamp >= timestamp:
                        return found
        return None

    def find_max_timestamp(self) -> LogPosition | None:
        """Return the record with the greatest timestamp; the first if there are more.

        Kafka can return a deleted record, as long as its file exists.
        """
        if not self._batches:
            return None
        latest = max(self._batches, key=attrgetter("max_timestamp"))
        greatest = latest.max_timestamp
        records = self._records(latest)
        return next((each for each in records if each.timestamp == greatest), None)

    def earliest_epoch(self, leader_epoch: int) -> int:
        """Return the leader epoch of the first batch, else `leader_epoch`."""
        return self._batches[0].leader_epoch if self._batches else leader_epoch

    def end_of_epoch(self, requested: int, current: int) -> tuple[int, int]:
        """Return the last epoch not after the wanted one, and its end offset.

        `current` is the leader's epoch. Returns -1, -1 for a later epoch. As in a log
        that was read from disk, epochs without records are unknown.
        """
        if requested < 0 or requested > current:
            return -1, -1
        if requested == current:
            return current, self.end_offset
        index = bisect_right(self._batches, requested, key=attrgetter("leader_epoch"))
        later = self._batches[index:]
        end = later[0].base_offset if later else self.end_offset
        return self._batches[index - 1].leader_epoch if index else requested, end

    def corrupt(self, offset: int) -> None:
        """Change a byte of the batch that has an offset, so that its CRC is wrong.

        Raises:
            LookupError: there is no such batch.
        """
        index = self._index(offset)
        if index == len(self._batches) or self._batches[index].base_offset > offset:
            raise LookupError(f"no batch has offset {offset}")
        data = bytearray(self._batches[index].data)
        data[-1] ^= 0xFF
        self._batches[index] = replace(self._batches[index], data=bytes(data))

    def _append(
        self,
        batch: bytes,
        header: BatchHeader,
        leader_epoch: int,
        append_time: int | None,
        transaction_version: int,
    ) -> Appended:
        if header.producer_id < 0:
            appended = self._store(batch, leader_epoch, append_time)
            self._update()
            return appended
        producer = self._producers.get(header.producer_id)
        producer = producer or LogProducer(header.producer_id)
        if duplicate := producer.duplicate(header):
            return duplicate
        producer.check(header, transaction_version)
        self._producers[header.producer_id] = producer
        appended = self._store(batch, leader_epoch, append_time)
        producer.note_append(
            header, replace(appended, log_append_time=self._last_timestamp())
        )
        if producer.transaction_start is not None:
            self._open_transactions[producer.producer_id] = producer.transaction_start
        self._update()
        return appended

    def _store(
        self, batch: bytes, leader_epoch: int, append_time: int | None
    ) -> Appended:
        base = self.end_offset
        new = stored(finalize(batch, base, leader_epoch, append_time))
        self._batches.append(new)
        self.end_offset = new.last_offset + 1
        return Appended(base, new.last_offset, append_time)

    def _last_timestamp(self) -> int:
        return self._batches[-1].max_timestamp

    def _index(self, offset: int) -> int:
        """Return the index of the batch that has an offset, or of the next one."""
        # Batches are contiguous: it is the first that does not end before the offset.
        return bisect_right(self._batches, offset - 1, key=attrgetter("last_offset"))

    def _batches_from(self, offset: int) -> Iterator[StoredBatch]:
        for index in range(self._index(offset), len(self._batches)):
            yield self._batches[index]

    def _records(self, batch: StoredBatch) -> Iterator[LogPosition]:
        try:
            for head in heads_of(batch.data):
                if head.offset >= self.start_offset:
                    yield LogPosition(head.offset, head.timestamp, batch.leader_epoch)
        except ValueError:
            # Records are not validated when written; the consumer finds the error.
            return

    def _update(self) -> None:
        first_open = min(self._open_transactions.values(), default=self.end_offset)
        self.last_stable_offset = max(first_open, self.start_offset)
        self.changed.notify()
