"""The transaction coordinator: producer ids, and all transactional ids.

Timeouts are lazy: callers of methods whose result an abort would change call `advance`
first. The effects of an end outside this state, markers in logs and offsets of groups,
are returned as an `Ending`; txn_markers.py applies it.
"""

import enum
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.transaction import (
    NOBODY,
    Ending,
    Place,
    Producer,
    State,
    Transaction,
)

__all__ = [
    "Ended",
    "Ending",
    "Initialised",
    "Place",
    "Producer",
    "Support",
    "Transactions",
]

LONGEST: Final = 900.0  # seconds; Kafka's transaction.max.timeout.ms


class Support(enum.IntEnum):
    """The features of a client that writes in a transaction (KIP-890)."""

    OLD = 0
    """Partitions and groups are added beforehand; old error codes."""
    ABORTABLE = 1
    """The same, and the client knows TRANSACTION_ABORTABLE."""
    ADDING = 2
    """Writing to a partition adds it: transactions of version 2."""


@dataclass(frozen=True, slots=True)
class Initialised:
    """The result of InitProducerId."""

    error: ErrorCode
    producer: Producer = NOBODY
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of EndTxn."""

    error: ErrorCode
    producer: Producer = NOBODY
    """The producer of the next transaction."""
    ending: Ending | None = None


class Transactions:
    """All transactional ids of the cluster."""

    def __init__(self) -> None:
        self._known: dict[str, Transaction] = {}
        self._next_producer_id = 0

    @property
    def next_deadline(self) -> float:
        """The time of the next abort, on the clock of `now`."""
        return min(
            (
                each.deadline
                for each in self._known.values()
                if each.deadline is not None
            ),
            default=math.inf,
        )

    def advance(self, now: float) -> list[Ending]:
        """Abort the transactions that have timed out."""
        return [
            each.fence()
            for each in self._known.values()
            if each.deadline is not None and each.deadline <= now
        ]

    def new_producer_id(self) -> int:
        producer_id = self._next_producer_id
        self._next_producer_id += 1
        return producer_id

    def initialise(
        self, transactional_id: str, timeout: float, expected: Producer | None
    ) -> Initialised:
        """Initialise the producer of a transactional id, and fence the previous one.

        If a transaction is open, it is aborted and the producer has to retry, as in
        Kafka. `expected` is the producer's last id and epoch, if it had one (KIP-360).
        """
        if not transactional_id:
            return Initialised(ErrorCode.invalid_request)
        if not 0 < timeout <= LONGEST:
            return Initialised(ErrorCode.invalid_transaction_timeout)
        known = self._known.get(transactional_id)
        if known is None:
            newcomer = Producer(self.new_producer_id(), NOBODY.epoch)
            known = self._known[transactional_id] = Transaction(newcomer, timeout)
        if expected is not None and not known.knows(expected):
            return Initialised(ErrorCode.producer_fenced)
        if known.state is State.ONGOING:
            return Initialised(ErrorCode.concurrent_transactions, ending=known.fence())
        fresh_id = self.new_producer_id() if known.is_exhausted else NOBODY.producer_id
        error = known.initialise(expected, timeout, fresh_id)
        if error:
            return Initialised(error)
        return Initialised(ErrorCode.none, known.producer)

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        places: Iterable[Place],
        now: float,
    ) -> ErrorCode:
        """Add partitions to a producer's transaction, and open it if necessary."""
        return self._add(transactional_id, producer, places, (), now)

    def add_group(
        self, transactional_id: str, producer: Producer, group_id: str, now: float
    ) -> ErrorCode:
        """Add a group, whose offsets are committed with the transaction."""
        return self._add(transactional_id, producer, (), (group_id,), now)

    def verify(
        self, transactional_id: str, producer: Producer, places: Iterable[Place]
    ) -> Mapping[Place, ErrorCode]:
        """Return an error for each partition that was not added (KIP-890)."""
        known, refusal = self._look_up(transactional_id, producer)
        if known is None or refusal:
            return dict.fromkeys(places, refusal)
        missing = ErrorCode.transaction_abortable
        return {
            place: ErrorCode.none if place in known.places else missing
            for place in places
        }

    def admit(
        self,
        transactional_id: str,
        producer: Producer,
        places: Collection[Place],
        support: Support,
        now: float,
    ) -> Mapping[Place, ErrorCode]:
        """Verify that a producer may write to partitions, or add them (version 2).

        The errors are those that the partitions' leaders return.
        """
        if support is Support.ADDING:
            error = self.add_partitions(transactional_id, producer, places, now)
            return dict.fromkeys(places, _as_leaders_say(error, support))
        verified = self.verify(transactional_id, producer, places)
        return {
            place: _as_leaders_say(error, support) for place, error in verified.items()
        }

    def add_pending_offsets(
        self,
        transactional_id: str,
        producer: Producer,
        group_id: str,
        support: Support,
        now: float,
    ) -> ErrorCode:
        """Verify that a producer may commit offsets for a group, or add the group.

        When the transaction ends, the group's `transaction_ended` is called. The error
        is the one that the group coordinator returns.
        """
        if support is Support.ADDING:
            error = self.add_group(transactional_id, producer, group_id, now)
            return _as_leaders_say(error, support)
        known, error = self._look_up(transactional_id, producer)
        if known is not None and not error and group_id not in known.groups:
            error = ErrorCode.transaction_abortable
        return _as_leaders_say(error, support)

    def end(
        self, transactional_id: str, producer: Producer, committed: bool, version: int
    ) -> Ended:
        """Commit or abort a producer's transaction.

        If the producer sends it again, it gets the same response as before.
        """
        if not transactional_id:
            return Ended(ErrorCode.invalid_request)
        known = self._known.get(transactional_id)
        if known is None:
            return Ended(ErrorCode.invalid_producer_id_mapping)
        error, done_before = known.judge(producer, committed, version)
        if error or done_before:
            return Ended(error, NOBODY if error else known.producer)
        bumps = version >= 2
        fresh_id = self.new_producer_id() if bumps and known.is_exhausted else None
        ending = known.complete(committed, bumps, fresh_id)
        return Ended(ErrorCode.none, known.producer, ending)

    def _add(
        self,
        transactional_id: str,
        producer: Producer,
        places: Iterable[Place],
        groups: Iterable[str],
        now: float,
    ) -> ErrorCode:
        known, refusal = self._look_up(transactional_id, producer)
        if known is not None and not refusal:
            known.begin(places, groups, now)
        return refusal

    def _look_up(
        self, transactional_id: str, producer: Producer
    ) -> tuple[Transaction | None, ErrorCode]:
        if not transactional_id:
            return None, ErrorCode.invalid_request
        known = self._known.get(transactional_id)
        if known is None:
            return None, ErrorCode.invalid_producer_id_mapping
        return known, known.refusal(producer)


def _as_leaders_say(error: ErrorCode, support: Support) -> ErrorCode:
    """Translate the transaction coordinator's error to that of a leader."""
    if error is ErrorCode.producer_fenced:
        return ErrorCode.invalid_producer_epoch
    if error is ErrorCode.transaction_abortable and support is Support.OLD:
        return ErrorCode.invalid_txn_state
    return error
