"""What a log remembers of a producer: its epoch, last batches, and open transaction.

So a batch that is sent again is written once (KIP-98, "Idempotent Producer"), one that
comes before its time is refused, and so is whatever an older epoch still sends.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.log.batches import AppendError, BatchHeader

__all__ = ["Appended", "LogProducer"]

REMEMBERED: Final = 5
"""Batches: as many as an idempotent producer has in flight."""

LAST_SEQUENCE: Final = 2**31 - 1
NONE: Final = -1  # no epoch, no sequence


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a batch lies in its log."""

    base_offset: int
    last_offset: int
    log_append_time: int | None = None
    """Milliseconds since the epoch; None where records keep their producers' times."""


@dataclass(slots=True)
class LogProducer:
    """One producer id, as one log knows it."""

    producer_id: int
    epoch: int = NONE
    transaction_start: int | None = None
    """The first offset of the transaction under way."""
    _last: deque[tuple[int, int, Appended]] = field(
        default_factory=lambda: deque(maxlen=REMEMBERED)
    )

    def duplicate(self, header: BatchHeader) -> Appended | None:
        """Give where this very batch was written before, if it was lately.

        Kafka then tells its greatest timestamp as the log's own.
        """
        if header.producer_epoch != self.epoch:
            return None
        wanted = [header.base_sequence, header.last_sequence]
        return next(
            (where for *sequences, where in self._last if sequences == wanted), None
        )

    def check(self, header: BatchHeader, transaction_version: int) -> None:
        """See that a batch may be written now.

        Raises:
            AppendError: its epoch is over, it is not the next in sequence, or it is not
                of the transaction under way, or of one that nobody knows of.
        """
        self._check_transaction(header, transaction_version)
        if header.producer_epoch < self.epoch:
            raise AppendError(
                ErrorCode.invalid_producer_epoch,
                f"Epoch of producer {self.producer_id} is {header.producer_epoch}, "
                f"which is smaller than the last seen epoch {self.epoch}",
            )
        # A coordinator of version 2 bumps the epoch for each transaction, so that its
        # first batch is the first of the epoch, even if this log has never seen it.
        counted = header.is_transactional and transaction_version >= 2
        is_first = counted and not self._last
        if not self._is_next(header) or (is_first and header.base_sequence != 0):
            raise AppendError(
                ErrorCode.out_of_order_sequence_number,
                f"Out of order sequence number for producer {self.producer_id}: "
                f"{header.base_sequence} (incoming seq. number), "
                f"{self._last[-1][1] if self._last else NONE} (current end sequence "
                "number)",
            )

    def wrote(self, header: BatchHeader, where: Appended) -> None:
        if header.producer_epoch != self.epoch:
            self._last.clear()
            self.epoch = header.producer_epoch
        self._last.append((header.base_sequence, header.last_sequence, where))
        if header.is_transactional and self.transaction_start is None:
            self.transaction_start = where.base_offset

    def ended(self, epoch: int) -> None:
        """Take note of a marker, which may come with a newer epoch."""
        if epoch != self.epoch:
            self._last.clear()
            self.epoch = epoch
        self.transaction_start = None

    def is_under_way(self, epoch: int) -> bool:
        """Tell whether a transaction of this epoch is."""
        return self.transaction_start is not None and self.epoch == epoch

    def _check_transaction(self, header: BatchHeader, transaction_version: int) -> None:
        if header.is_transactional:
            known = transaction_version > 0 or self.is_under_way(header.producer_epoch)
            message = "Record was not part of an ongoing transaction"
        else:
            known = self.transaction_start is None
            message = f"Expected transactional write from producer {self.producer_id}"
        if not known:
            raise AppendError(ErrorCode.invalid_txn_state, message)

    def _is_next(self, header: BatchHeader) -> bool:
        sequence = header.base_sequence
        # Nothing is known of a producer whose records are gone: any sequence will do.
        if self.epoch == NONE:
            return True
        if header.producer_epoch != self.epoch:
            return sequence == 0
        last = self._last[-1][1] if self._last else NONE
        return sequence == (0 if last == LAST_SEQUENCE else last + 1)
