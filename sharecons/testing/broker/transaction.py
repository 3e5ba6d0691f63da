"""One transactional id: who its producer is, and how far its transaction has come.

Transactions come in two versions. In version 1 a producer keeps its epoch from one
transaction to the next; in version 2 (KIP-890, "Bump Epoch on Each Transaction") each
end bumps it, so that what is late of one transaction never gets into the next. Which
one it is, the end tells: EndTxn 5 is version 2. What the coordinator ends by itself
fences the producer, and so bumps the epoch in either.

Real Kafka writes markers while the producer goes on, and so knows states in between
(PrepareCommit, PrepareAbort) in which it answers CONCURRENT_TRANSACTIONS. Here a
transaction and its markers end at once.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from sharecons.testing.broker.codec import ErrorCode

__all__ = ["NOBODY", "Ending", "Place", "Producer", "State", "Transaction"]

Place: TypeAlias = tuple[str, int]
"""A topic's name and a partition."""

NONE: Final = -1  # no producer id, no epoch

LAST_EPOCH: Final = 2**15 - 2
"""The last that a producer gets: one more is kept, to fence it with."""


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


NOBODY: Final = Producer(NONE, NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What is to be done at a transaction's end: markers, and a group's offsets."""

    producer_id: int
    marker_epoch: int
    committed: bool
    places: frozenset[Place]
    groups: frozenset[str]


@dataclass(slots=True)
class Transaction:
    """The transactions of one transactional id, one after the other."""

    producer: Producer
    timeout: float
    state: State = State.EMPTY
    deadline: float | None = None
    """When the one under way is aborted."""
    places: set[Place] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    _last_epoch: int = NONE
    """The epoch before, of the same producer, which may not have got its answer."""
    _previous_id: int = NONE

    @property
    def is_exhausted(self) -> bool:
        """Tell whether the next epoch needs a producer id of its own."""
        return self.producer.epoch >= LAST_EPOCH

    def refusal(self, producer: Producer) -> ErrorCode:
        """Say why a producer may not add to the transaction; `none` if it may."""
        if producer.producer_id != self.producer.producer_id:
            return ErrorCode.invalid_producer_id_mapping
        if producer.epoch != self.producer.epoch:
            return ErrorCode.producer_fenced
        return ErrorCode.none

    def knows(self, expected: Producer) -> bool:
        """Tell whether a producer that comes again was here last (KIP-360)."""
        return (
            self.producer.epoch == NONE
            or expected.producer_id == self.producer.producer_id
            or (
                expected.producer_id == self._previous_id
                and expected.epoch >= LAST_EPOCH
            )
        )

    def begin(self, places: Iterable[Place], groups: Iterable[str], now: float) -> None:
        """Add to the transaction; it begins with the first that is added."""
        if self.state is not State.ONGOING:
            self.state = State.ONGOING
            self.deadline = now + self.timeout
            self._previous_id = self.producer.producer_id
        self.places.update(places)
        self.groups.update(groups)

    def initialise(
        self, expected: Producer | None, timeout: float, fresh_id: int
    ) -> ErrorCode:
        """Give the next epoch out, while no transaction is under way.

        A producer that says who it was gets the epoch again that it may have missed.
        `fresh_id` is for the case that this id has no epochs left.
        """
        current = self.producer
        known = expected is None or expected.epoch == current.epoch
        if self.is_exhausted and known:
            last = NONE if expected is None else current.epoch
            self._become(Producer(fresh_id, 0), last)
        elif known or current.epoch == NONE:
            last = NONE if expected is None else current.epoch
            self._become(Producer(current.producer_id, current.epoch + 1), last)
        elif expected is not None and expected.epoch != self._last_epoch:
            return ErrorCode.producer_fenced
        self.state = State.EMPTY
        self.timeout = timeout
        return ErrorCode.none

    def fence(self) -> Ending:
        """Abort what is under way, so that its producer can do no more."""
        self._become(Producer(self.producer.producer_id, self.producer.epoch + 1), NONE)
        return self.complete(committed=False, bumps=False, fresh_id=None)

    def judge(
        self, producer: Producer, committed: bool, version: int
    ) -> tuple[ErrorCode, bool]:
        """Say what a producer's wish to end comes to: an error, or done before."""
        again = version >= 2 and self._has_ended_before(producer)
        if producer.producer_id != self.producer.producer_id and not again:
            return ErrorCode.invalid_producer_id_mapping, False
        if producer != self.producer and not again:
            return ErrorCode.producer_fenced, False
        if self.state is State.ONGOING:
            return ErrorCode.none, False
        ended_so = self.state is (State.COMMITTED if committed else State.ABORTED)
        if again or version < 2:
            error = ErrorCode.none if ended_so else ErrorCode.invalid_txn_state
            return error, ended_so
        # Nothing was added: there is nothing to commit, but something to give up.
        return (ErrorCode.invalid_txn_state if committed else ErrorCode.none), False

    def complete(self, committed: bool, bumps: bool, fresh_id: int | None) -> Ending:
        """End the transaction; with `bumps`, in the epoch that comes next.

        `fresh_id` is the producer's from now on, where its old one has no epochs left.
        """
        producer = self.producer
        marker_epoch = producer.epoch + 1 if bumps else producer.epoch
        if bumps and fresh_id is not None:
            self._become(Producer(fresh_id, 0), producer.epoch)
        elif bumps:
            self._become(Producer(producer.producer_id, marker_epoch), producer.epoch)
        ending = Ending(
            producer_id=producer.producer_id,
            marker_epoch=marker_epoch,
            committed=committed,
            places=frozenset(self.places),
            groups=frozenset(self.groups),
        )
        self.state = State.COMMITTED if committed else State.ABORTED
        self.deadline = None
        self.places.clear()
        self.groups.clear()
        return ending

    def _become(self, producer: Producer, last_epoch: int) -> None:
        self._previous_id = self.producer.producer_id
        self.producer = producer
        self._last_epoch = last_epoch

    def _has_ended_before(self, producer: Producer) -> bool:
        """Tell whether an end comes again, after it has bumped the epoch."""
        if self.state not in (State.COMMITTED, State.ABORTED):
            return False
        bumped = producer.epoch + 1
        if producer.epoch == LAST_EPOCH and self.producer.epoch == 0:
            return producer.producer_id == self._previous_id
        return self.producer == Producer(producer.producer_id, bumped)
