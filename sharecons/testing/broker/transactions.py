"""Producer ids, and the transactions of all transactional ids: their coordinator.

Time-outs are lazy: whoever asks for something that an abort would change calls
`advance` first. What an end has to do beyond this state, markers in logs and offsets of
groups, comes out as an `Ending`, for markers.py.
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

LONGEST: Final = 900.0  # seconds: Kafka's transaction.max.timeout.ms


class Support(enum.IntEnum):
    """What a client's request to write in a transaction supports (KIP-890)."""

    OLD = 0
    """What it writes to has been added; old error codes."""
    ABORTABLE = 1
    """The same, and it knows TRANSACTION_ABORTABLE."""
    ADDING = 2
    """To write is to add: transactions of version 2."""


@dataclass(frozen=True, slots=True)
class Initialised:
    """The answer to InitProducerId, and what is to be done beside it."""

    error: ErrorCode
    producer: Producer = NOBODY
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The answer to EndTxn, and what is to be done beside it."""

    error: ErrorCode
    producer: Producer = NOBODY
    """Who the producer is in its next transaction."""
    ending: Ending | None = None


class Transactions:
    """Every transactional id of the cluster."""

    def __init__(self) -> None:
        self._known: dict[str, Transaction] = {}
        self._next_producer_id = 0

    @property
    def next_deadline(self) -> float:
        """When the next transaction is aborted, on the clock of `now`."""
        return min(
            (
                each.deadline
                for each in self._known.values()
                if each.deadline is not None
            ),
            default=math.inf,
        )

    def advance(self, now: float) -> list[Ending]:
        """Abort the transactions that have taken too long."""
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
        """Make somebody the producer of a transactional id, and nobody else.

        A transaction under way is aborted first, and the producer asked to come again,
        as Kafka does it. `expected` is who the producer says it has been (KIP-360).
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
        """Add partitions to a producer's transaction, which may begin with them."""
        return self._add(transactional_id, producer, places, (), now)

    def add_group(
        self, transactional_id: str, producer: Producer, group_id: str, now: float
    ) -> ErrorCode:
        """Add a group, whose offsets are committed along with the transaction."""
        return self._add(transactional_id, producer, (), (group_id,), now)

    def verify(
        self, transactional_id: str, producer: Producer, places: Iterable[Place]
    ) -> Mapping[Place, ErrorCode]:
        """Tell which partitions have been added (KIP-890, "Verification")."""
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
        """See that a producer may write to partitions, and add them if that is its way.

        The errors are those that the leaders of the partitions answer.
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
        """See that a producer may commit for a group, and add the group if need be.

        Once the transaction ends, `transaction_ended` of the group is called. The error
        is the one that the group's coordinator answers.
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

        An end that comes again, since its answer was lost, is answered as before.
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
    """Translate what the coordinator says to what clients know from leaders."""
    if error is ErrorCode.producer_fenced:
        return ErrorCode.invalid_producer_epoch
    if error is ErrorCode.transaction_abortable and support is Support.OLD:
        return ErrorCode.invalid_txn_state
    return error
