"""The transaction coordinator: producer ids, and all transactional ids.

Timeouts are lazy: callers of methods whose result an abort would change call `advance`
first. The effects of an end outside this state, markers in logs and offsets of groups,
are returned as an `TransactionEnd`; txn_markers.py applies it.
"""

import enum
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.transaction import (
    NO_PRODUCER,
    Producer,
    State,
    TopicPartition,
    Transaction,
    TransactionEnd,
)

__all__ = [
    "EndResult",
    "InitResult",
    "Producer",
    "TopicPartition",
    "TransactionEnd",
    "TransactionSupport",
    "Transactions",
]

MAX_TIMEOUT: Final = 900.0  # seconds; Kafka's transaction.max.timeout.ms


class TransactionSupport(enum.IntEnum):
    """The features of a client that writes in a transaction (KIP-890)."""

    DEFAULT = 0
    """Partitions and groups are added beforehand; old error codes."""
    ABORTABLE = 1
    """The same, and the client knows TRANSACTION_ABORTABLE."""
    ADD_PARTITION = 2
    """Writing to a partition adds it: transactions of version 2."""


@dataclass(frozen=True, slots=True)
class InitResult:
    """The result of InitProducerId."""

    error: ErrorCode
    producer: Producer = NO_PRODUCER
    ended: TransactionEnd | None = None


@dataclass(frozen=True, slots=True)
class EndResult:
    """The result of EndTxn."""

    error: ErrorCode
    producer: Producer = NO_PRODUCER
    """The producer of the next transaction."""
    ended: TransactionEnd | None = None


class Transactions:
    """All transactional ids of the cluster."""

    def __init__(self) -> None:
        self._transactions: dict[str, Transaction] = {}
        self._next_producer_id = 0

    @property
    def next_deadline(self) -> float:
        """The time of the next abort, on the clock of `now`."""
        return min(
            (
                each.deadline
                for each in self._transactions.values()
                if each.deadline is not None
            ),
            default=math.inf,
        )

    def advance(self, now: float) -> list[TransactionEnd]:
        """Abort the transactions that have timed out."""
        return [
            each.fence()
            for each in self._transactions.values()
            if each.deadline is not None and each.deadline <= now
        ]

    def new_producer_id(self) -> int:
        producer_id = self._next_producer_id
        self._next_producer_id += 1
        return producer_id

    def initialise(
        self, transactional_id: str, timeout: float, expected: Producer | None
    ) -> InitResult:
        """Initialise the producer of a transactional id, and fence the previous one.

        If a transaction is open, it is aborted and the producer has to retry, as in
        Kafka. `expected` is the producer's last id and epoch, if it had one (KIP-360).
        """
        if not transactional_id:
            return InitResult(ErrorCode.invalid_request)
        if not 0 < timeout <= MAX_TIMEOUT:
            return InitResult(ErrorCode.invalid_transaction_timeout)
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            producer = Producer(self.new_producer_id(), NO_PRODUCER.epoch)
            transaction = self._transactions[transactional_id] = Transaction(
                producer, timeout
            )
        if expected is not None and not transaction.was_last_producer(expected):
            return InitResult(ErrorCode.producer_fenced)
        if transaction.state is State.ONGOING:
            return InitResult(
                ErrorCode.concurrent_transactions, ended=transaction.fence()
            )
        fresh_id = (
            self.new_producer_id()
            if transaction.is_exhausted
            else NO_PRODUCER.producer_id
        )
        error = transaction.initialise(expected, timeout, fresh_id)
        if error:
            return InitResult(error)
        return InitResult(ErrorCode.none, transaction.producer)

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
        now: float,
    ) -> ErrorCode:
        """Add partitions to a producer's transaction, and open it if necessary."""
        return self._add(transactional_id, producer, partitions, (), now)

    def add_group(
        self, transactional_id: str, producer: Producer, group_id: str, now: float
    ) -> ErrorCode:
        """Add a group, whose offsets are committed with the transaction."""
        return self._add(transactional_id, producer, (), (group_id,), now)

    def _verify(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Return an error for each partition that was not added (KIP-890)."""
        transaction, error = self._look_up(transactional_id, producer)
        if transaction is None or error:
            return dict.fromkeys(partitions, error)
        missing = ErrorCode.transaction_abortable
        return {
            topic_partition: ErrorCode.none
            if topic_partition in transaction.partitions
            else missing
            for topic_partition in partitions
        }

    def verify_or_add(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        support: TransactionSupport,
        now: float,
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Verify that a producer can write to partitions, or add them (version 2).

        The leaders of the partitions return the errors.
        """
        if support is TransactionSupport.ADD_PARTITION:
            error = self.add_partitions(transactional_id, producer, partitions, now)
            return dict.fromkeys(partitions, _leader_error(error, support))
        verified = self._verify(transactional_id, producer, partitions)
        return {
            topic_partition: _leader_error(error, support)
            for topic_partition, error in verified.items()
        }

    def add_pending_offsets(
        self,
        transactional_id: str,
        producer: Producer,
        group_id: str,
        support: TransactionSupport,
        now: float,
    ) -> ErrorCode:
        """Verify that a producer can commit offsets for a group, or add the group.

        When the transaction ends, the group's `transaction_ended` is called. The error
        is the group coordinator's.
        """
        if support is TransactionSupport.ADD_PARTITION:
            error = self.add_group(transactional_id, producer, group_id, now)
            return _leader_error(error, support)
        transaction, error = self._look_up(transactional_id, producer)
        if transaction is not None and not error and group_id not in transaction.groups:
            error = ErrorCode.transaction_abortable
        return _leader_error(error, support)

    def end(
        self, transactional_id: str, producer: Producer, committed: bool, version: int
    ) -> EndResult:
        """Commit or abort a producer's transaction.

        If the producer sends it again, it gets the same response as before.
        """
        if not transactional_id:
            return EndResult(ErrorCode.invalid_request)
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            return EndResult(ErrorCode.invalid_producer_id_mapping)
        error, done_before = transaction.check_end(producer, committed, version)
        if error or done_before:
            return EndResult(error, NO_PRODUCER if error else transaction.producer)
        bumps = version >= 2
        fresh_id = (
            self.new_producer_id() if bumps and transaction.is_exhausted else None
        )
        ended = transaction.complete(committed, bumps, fresh_id)
        return EndResult(ErrorCode.none, transaction.producer, ended)

    def _add(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
        groups: Iterable[str],
        now: float,
    ) -> ErrorCode:
        transaction, error = self._look_up(transactional_id, producer)
        if transaction is not None and not error:
            transaction.add(partitions, groups, now)
        return error

    def _look_up(
        self, transactional_id: str, producer: Producer
    ) -> tuple[Transaction | None, ErrorCode]:
        if not transactional_id:
            return None, ErrorCode.invalid_request
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            return None, ErrorCode.invalid_producer_id_mapping
        return transaction, transaction.producer_error(producer)


def _leader_error(error: ErrorCode, support: TransactionSupport) -> ErrorCode:
    """Translate the transaction coordinator's error to a leader's error."""
    if error is ErrorCode.producer_fenced:
        return ErrorCode.invalid_producer_epoch
    if (
        error is ErrorCode.transaction_abortable
        and support is TransactionSupport.DEFAULT
    ):
        return ErrorCode.invalid_txn_state
    return error
