"""One transactional id: its producer and the state of its transaction.

Transactions have two versions. In version 1 a producer keeps its epoch from one
transaction to the next. In version 2 (KIP-890, "Bump Epoch on Each Transaction") each
end bumps it, so that delayed requests of one transaction never affect the next. The
version follows from the end: EndTxn 5 is version 2. When the coordinator itself ends a
transaction, it fences the producer, and so bumps the epoch in both versions.

Kafka writes markers asynchronously and so has states in between (PrepareCommit,
PrepareAbort) in which it returns CONCURRENT_TRANSACTIONS. Here a transaction and its
markers end in one step.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from sharecons.testing.broker.codec import ErrorCode

__all__ = [
    "NO_PRODUCER",
    "Producer",
    "State",
    "TopicPartition",
    "Transaction",
    "TransactionEnd",
]

TopicPartition: TypeAlias = tuple[str, int]
"""A topic's name and a partition index."""

NO_ID: Final = -1
"""No producer id, or no epoch."""

LAST_EPOCH: Final = 2**15 - 2
"""The last epoch that a producer gets; the next one is kept for fencing it."""


class State(enum.Enum):
    EMPTY = enum.auto()
    ONGOING = enum.auto()
    COMMITTED = enum.auto()
    ABORTED = enum.auto()


@dataclass(frozen=True, slots=True)
class Producer:
    """A producer id with its epoch."""

    producer_id: int
    epoch: int


NO_PRODUCER: Final = Producer(NO_ID, NO_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionEnd:
    """A transaction that has ended, with its partitions and groups."""

    producer_id: int
    marker_epoch: int
    committed: bool
    partitions: frozenset[TopicPartition]
    groups: frozenset[str]


@dataclass(slots=True)
class Transaction:
    """The present transaction of a transactional id, or the last one."""

    producer: Producer
    timeout: float
    state: State = State.EMPTY
    deadline: float | None = None
    """When the open transaction is aborted."""
    partitions: set[TopicPartition] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    _last_epoch: int = NO_ID
    """The producer's epoch before this one; it might have missed the response."""
    _previous_id: int = NO_ID

    @property
    def is_exhausted(self) -> bool:
        """True if the next epoch needs a new producer id."""
        return self.producer.epoch >= LAST_EPOCH

    def producer_error(self, producer: Producer) -> ErrorCode:
        """Return why a producer cannot add to the transaction, or `none`."""
        if producer.producer_id != self.producer.producer_id:
            return ErrorCode.invalid_producer_id_mapping
        if producer.epoch != self.producer.epoch:
            return ErrorCode.producer_fenced
        return ErrorCode.none

    def was_last_producer(self, expected: Producer) -> bool:
        """Return whether a returning producer was the last one (KIP-360)."""
        return (
            self.producer.epoch == NO_ID
            or expected.producer_id == self.producer.producer_id
            or (
                expected.producer_id == self._previous_id
                and expected.epoch >= LAST_EPOCH
            )
        )

    def add(
        self, partitions: Iterable[TopicPartition], groups: Iterable[str], now: float
    ) -> None:
        """Add partitions and groups; the first of them opens the transaction."""
        if self.state is not State.ONGOING:
            self.state = State.ONGOING
            self.deadline = now + self.timeout
            self._previous_id = self.producer.producer_id
        self.partitions.update(partitions)
        self.groups.update(groups)

    def initialise(
        self, expected: Producer | None, timeout: float, fresh_id: int
    ) -> ErrorCode:
        """Bump the epoch for a producer, while no transaction is open.

        A producer that sends its last epoch again gets the same new epoch: it might
        have missed the response. `fresh_id` is used if this producer id has no
        epochs left.
        """
        current = self.producer
        known = expected is None or expected.epoch == current.epoch
        if self.is_exhausted and known:
            last = NO_ID if expected is None else current.epoch
            self._set_producer(Producer(fresh_id, 0), last)
        elif known or current.epoch == NO_ID:
            last = NO_ID if expected is None else current.epoch
            self._set_producer(Producer(current.producer_id, current.epoch + 1), last)
        elif expected is not None and expected.epoch != self._last_epoch:
            return ErrorCode.producer_fenced
        self.state = State.EMPTY
        self.timeout = timeout
        return ErrorCode.none

    def fence(self) -> TransactionEnd:
        """Abort the open transaction and fence its producer."""
        self._set_producer(
            Producer(self.producer.producer_id, self.producer.epoch + 1), NO_ID
        )
        return self.complete(committed=False, bumps=False, fresh_id=None)

    def check_end(
        self, producer: Producer, committed: bool, version: int
    ) -> tuple[ErrorCode, bool]:
        """Check a producer's EndTxn: return the error, and whether it is a repeat."""
        is_repeat = version >= 2 and self._has_ended_by(producer)
        if producer.producer_id != self.producer.producer_id and not is_repeat:
            return ErrorCode.invalid_producer_id_mapping, False
        if producer != self.producer and not is_repeat:
            return ErrorCode.producer_fenced, False
        if self.state is State.ONGOING:
            return ErrorCode.none, False
        has_same_end = self.state is (State.COMMITTED if committed else State.ABORTED)
        if is_repeat or version < 2:
            error = ErrorCode.none if has_same_end else ErrorCode.invalid_txn_state
            return error, has_same_end
        # Nothing was added: commit is an error, abort is not.
        return (ErrorCode.invalid_txn_state if committed else ErrorCode.none), False

    def complete(
        self, committed: bool, bumps: bool, fresh_id: int | None
    ) -> TransactionEnd:
        """End the transaction; `bumps` writes markers with the next epoch.

        `fresh_id` is the producer id from now on, if the old one has no epochs left.
        """
        producer = self.producer
        marker_epoch = producer.epoch + 1 if bumps else producer.epoch
        if bumps and fresh_id is not None:
            self._set_producer(Producer(fresh_id, 0), producer.epoch)
        elif bumps:
            self._set_producer(
                Producer(producer.producer_id, marker_epoch), producer.epoch
            )
        ended = TransactionEnd(
            producer_id=producer.producer_id,
            marker_epoch=marker_epoch,
            committed=committed,
            partitions=frozenset(self.partitions),
            groups=frozenset(self.groups),
        )
        self.state = State.COMMITTED if committed else State.ABORTED
        self.deadline = None
        self.partitions.clear()
        self.groups.clear()
        return ended

    def _set_producer(self, producer: Producer, last_epoch: int) -> None:
        self._previous_id = self.producer.producer_id
        self.producer = producer
        self._last_epoch = last_epoch

    def _has_ended_by(self, producer: Producer) -> bool:
        """Return whether this repeats an end that has already bumped the epoch."""
        if self.state not in (State.COMMITTED, State.ABORTED):
            return False
        bumped = producer.epoch + 1
        if producer.epoch == LAST_EPOCH and self.producer.epoch == 0:
            return producer.producer_id == self._previous_id
        return self.producer == Producer(producer.producer_id, bumped)
