"""A log's state of a producer: its epoch, last batches and open transaction.

By it the log ignores duplicate batches (KIP-98, "Idempotent Producer"), and rejects
batches out of sequence and batches of older epochs.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.log.batches import AppendError, BatchHeader

__all__ = ["Appended", "LogProducer"]

MAX_BATCHES: Final = 5
"""The number of batches that an idempotent producer can have in flight."""

LAST_SEQUENCE: Final = 2**31 - 1
UNKNOWN: Final = -1  # no epoch, no sequence


@dataclass(frozen=True, slots=True)
class Appended:
    """The position of a batch in its log."""

    base_offset: int
    last_offset: int
    log_append_time: int | None = None
    """Milliseconds since the epoch; None if records keep their own timestamps."""


@dataclass(slots=True)
class LogProducer:
    """One producer id in one log."""

    producer_id: int
    epoch: int = UNKNOWN
    transaction_start: int | None = None
    """The first offset of the open transaction."""
    _last_batches: deque[tuple[int, int, Appended]] = field(
        default_factory=lambda: deque(maxlen=MAX_BATCHES)
    )

    def duplicate(self, header: BatchHeader) -> Appended | None:
        """Return the position of a recent batch with the same sequences, or None.

        Its log append time is the greatest timestamp, as in Kafka.
        """
        if header.producer_epoch != self.epoch:
            return None
        wanted = [header.base_sequence, header.last_sequence]
        return next(
            (
                appended
                for *sequences, appended in self._last_batches
                if sequences == wanted
            ),
            None,
        )

    def check(self, header: BatchHeader, transaction_version: int) -> None:
        """Check that a batch can be appended now.

        Raises:
            AppendError: its epoch is old, its sequence is not the next, or it does not
                belong to a known transaction.
        """
        self._check_transaction(header, transaction_version)
        if header.producer_epoch < self.epoch:
            raise AppendError(
                ErrorCode.invalid_producer_epoch,
                f"Epoch of producer {self.producer_id} is {header.producer_epoch}, "
                f"which is smaller than the last seen epoch {self.epoch}",
            )
        # In version 2 the coordinator bumps the epoch for each transaction. So its
        # first batch has sequence 0, even if this log does not know the producer.
        starts_at_zero = header.is_transactional and transaction_version >= 2
        is_first = starts_at_zero and not self._last_batches
        if not self._is_next(header) or (is_first and header.base_sequence != 0):
            last = self._last_batches[-1][1] if self._last_batches else UNKNOWN
            raise AppendError(
                ErrorCode.out_of_order_sequence_number,
                f"Out of order sequence number for producer {self.producer_id}: "
                f"{header.base_sequence} (incoming seq. number), {last} (current end "
                "sequence number)",
            )

    def note_append(self, header: BatchHeader, appended: Appended) -> None:
        if header.producer_epoch != self.epoch:
            self._last_batches.clear()
            self.epoch = header.producer_epoch
        self._last_batches.append(
            (header.base_sequence, header.last_sequence, appended)
        )
        if header.is_transactional and self.transaction_start is None:
            self.transaction_start = appended.base_offset

    def note_marker(self, epoch: int) -> None:
        """End the transaction at a marker, which can have a newer epoch."""
        if epoch != self.epoch:
            self._last_batches.clear()
            self.epoch = epoch
        self.transaction_start = None

    def has_open_transaction(self, epoch: int) -> bool:
        """Return whether a transaction of this epoch is open."""
        return self.transaction_start is not None and self.epoch == epoch

    def _check_transaction(self, header: BatchHeader, transaction_version: int) -> None:
        if header.is_transactional:
            known = transaction_version > 0 or self.has_open_transaction(
                header.producer_epoch
            )
            message = "Record was not part of an ongoing transaction"
        else:
            known = self.transaction_start is None
            message = f"Expected transactional write from producer {self.producer_id}"
        if not known:
            raise AppendError(ErrorCode.invalid_txn_state, message)

    def _is_next(self, header: BatchHeader) -> bool:
        sequence = header.base_sequence
        # The producer's records might have been deleted: any sequence is valid.
        if self.epoch == UNKNOWN:
            return True
        if header.producer_epoch != self.epoch:
            return sequence == 0
        last = self._last_batches[-1][1] if self._last_batches else UNKNOWN
        return sequence == (0 if last == LAST_SEQUENCE else last + 1)
