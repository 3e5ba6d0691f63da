"""The acknowledgement batcher of one leader: what is to be said, in which request.

Rule 1: an acknowledgement is sent to the leader that its record came from, in
the session's life in which it came, or it fails; it is never sent elsewhere.
Rule 2: this file does not know when requests go out; `leader` decides that.

Theory of operation
-------------------
Leases say that something was marked; `take` turns the marks into pieces, one for
a lease, and picks for the next request at most one kind of piece per partition.
For a broker applies a partition's acknowledgements all or nothing (measured on
4.3.0): one offset whose lock has ended spoils all those beside it. So what is
near its lock's end travels alone and first, and what is past it alone and last.
A piece that was refused is halved and sent again, until the offsets that spoil
it stand alone; a budget bounds that.

Every piece ends in results, for the callback and for whoever waits in commit():
a `Ticket` counts the pieces that it waits for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from sharecons.protocol import reactions
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.leases import Lease
from sharecons.protocol.ranges import GAP, Run, ranges_of, runs_of, split
from sharecons.protocol.reactions import Reaction, reaction
from sharecons.protocol.session import Term
from sharecons.protocol.values import FetchedPartition, Range, SharePartition
from sharecons.record import RENEW, AcknowledgeType

__all__ = [
    "AcknowledgeError",
    "AcknowledgeResult",
    "Acknowledgements",
    "Journal",
    "Ticket",
    "join_results",
]

NEAR_ITS_END: Final = 1.0
"""Seconds before a lock's end in which an acknowledgement is not to be trusted:
twice the longest fetch that it may wait behind."""

SPLITS: Final = 32
"""How often the parts of one piece may be halved: enough to single out two bad
offsets among 2,000 (the broker's default window)."""


class AcknowledgeError(NamedTuple):
    """Why an acknowledgement was not applied: Kafka's code, name and words."""

    code: int
    name: str
    message: str


class AcknowledgeResult(NamedTuple):
    """What became of a range of acknowledged records; `error` of None is success.

    An error means that the records were not settled, or that nobody knows: they
    may be delivered again.
    """

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    type: AcknowledgeType
    error: AcknowledgeError | None


def join_results(results: Sequence[AcknowledgeResult]) -> list[AcknowledgeResult]:
    """Sort results, and make one of neighbours with the same fate."""
    joined: list[AcknowledgeResult] = []
    for result in sorted(results, key=lambda result: result[:3]):
        before = joined[-1] if joined else None
        if (
            before is not None
            and before[:2] == result[:2]
            and before.last_offset + 1 == result.first_offset
            and before[4:] == result[4:]
        ):
            joined[-1] = before._replace(last_offset=result.last_offset)
        else:
            joined.append(result)
    return joined


@final
class Journal:
    """What the acknowledgements of one consumer, to all its leaders, have in common.

    Attributes:
        closed: nothing may be said any more.
        results: what became of acknowledgements; taken by the shell.
    """

    __slots__ = ("closed", "results", "wake")

    def __init__(self, wake: Callable[[], None]) -> None:
        self.closed = False
        self.results: list[AcknowledgeResult] = []
        self.wake = wake


@final
class Ticket:
    """What one commit() waits for."""

    __slots__ = ("results", "waiting")

    def __init__(self) -> None:
        self.waiting = 0
        self.results: list[AcknowledgeResult] = []

    @property
    def done(self) -> bool:
        return self.waiting == 0


@dataclass(slots=True, eq=False)
class Piece:
    """A part of a lease that is acknowledged together."""

    lease: Lease
    ranges: tuple[Range, ...]
    deadline: float
    splits: int = SPLITS
    tickets: tuple[Ticket, ...] = ()

    @property
    def renews(self) -> bool:
        return any(RENEW in r.kinds for r in self.ranges)

    @property
    def is_single(self) -> bool:
        first = self.ranges[0]
        return len(self.ranges) == 1 and first.first_offset == first.last_offset

    def results(self, error: AcknowledgeError | None) -> list[AcknowledgeResult]:
        return _results(self.lease, runs_of(self.ranges), error)


class Acknowledgements:
    """Collects what is said of one leader's records; the owner of their leases.

    Attributes:
        renewable: the leader knows Renew (ShareAcknowledge version 2).
        to_retry: the last answer asked for patience before sending again.
    """

    def __init__(self, wake: Callable[[], None], journal: Journal) -> None:
        self.renewable = True
        self.to_retry = False
        self._wake = wake
        self._journal = journal
        self._held: dict[Lease, None] = {}
        self._dirty: list[Lease] = []
        self._waiting: list[Piece] = []
        self._under_way: dict[SharePartition, list[Piece]] = {}

    @property
    def closed(self) -> bool:
        """True once nothing may be said any more."""
        return self._journal.closed

    @property
    def pending(self) -> bool:
        """True while something is to be sent."""
        return bool(self._dirty or self._waiting)

    @property
    def held(self) -> tuple[Lease, ...]:
        """Leases of which something is left to say, send or hear."""
        return tuple(self._held)

    @property
    def has_open(self) -> bool:
        """True while the application may say something of this leader's records."""
        return any(lease.has_open for lease in self._held)

    @property
    def renews(self) -> bool:
        """True while a renewal is to be sent; `freeze` first."""
        return any(piece.renews for piece in self._waiting)

    # What leases tell.

    def acquired(self, lease: Lease) -> None:
        self._held[lease] = None

    def marked(self, lease: Lease) -> None:
        if lease.term.over:
            return
        self._dirty.append(lease)
        self._wake()

    def forfeited(self, lease: Lease, runs: Sequence[Run]) -> None:
        self._journal.results += _results(lease, runs, _session_lost(lease.term))
        self._journal.wake()

    # What the leader's requests take, and what becomes of them.

    def freeze(self, ticket: Ticket | None = None) -> None:
        """Turn marks into pieces; a ticket waits for them, and for what went before."""
        dirty, self._dirty = self._dirty, []
        for lease in dirty:
            for deadline, runs in lease.take():
                self._waiting.append(Piece(lease, ranges_of(runs), deadline))
        if ticket is not None:
            under_way = [
                piece for pieces in self._under_way.values() for piece in pieces
            ]
            for piece in [*self._waiting, *under_way]:
                piece.tickets += (ticket,)
                ticket.waiting += 1

    def take(self, now: float) -> dict[SharePartition, tuple[Range, ...]]:
        """Pick what the next request carries; it is under way from here on."""
        self.freeze()
        chosen: dict[SharePartition, int] = {}
        for piece in self._waiting:
            share_partition, urgency = piece.lease.share_partition, _urgency(piece, now)
            chosen[share_partition] = min(urgency, chosen.get(share_partition, urgency))
        waiting, self._waiting = self._waiting, []
        for piece in waiting:
            share_partition = piece.lease.share_partition
            if _urgency(piece, now) != chosen[share_partition] or (share_partition in self._under_way and not self._fits(piece)):
                self._waiting.append(piece)
            else:
                self._under_way.setdefault(share_partition, []).append(piece)
        return {
            share_partition: _merged(pieces)
            for share_partition, pieces in self._under_way.items()
        }

    def answered(
        self,
        partitions: Sequence[FetchedPartition],
        *,
        error: AcknowledgeError | None,
        renewed_until: float,
        now: float,
    ) -> None:
        """The request that carried the last `take` was answered.

        `error` is one for all of it; else each partition has its own, and one
        that the answer leaves out has failed.
        """
        self.to_retry = False
        told = {answer.share_partition: answer for answer in partitions}
        under_way, self._under_way = self._under_way, {}
        for share_partition, pieces in under_way.items():
            if error is not None:
                self._failed(pieces, error)
            elif share_partition not in told:
                self._failed(pieces, _LEFT_OUT)
            else:
                self._partition_answered(
                    pieces, told[share_partition], renewed_until, now
                )

    def resend(self) -> None:
        """The request that carried the last `take` was not applied: send it again."""
        for pieces in self._under_way.values():
            self._waiting += pieces
        self._under_way = {}

    def lost(self, term: Term) -> None:
        """The session's life is over, and with it the locks of all its leases."""
        error = _session_lost(term)
        under_way, self._under_way = self._under_way, {}
        waiting, self._waiting = self._waiting, []
        for pieces in [*under_way.values(), waiting]:
            self._failed(pieces, error)
        for lease in self._held:
            self._journal.results += _results(lease, lease.forsaken(), error)
        self._held = {}
        self._dirty = []

    def forget_ended(self, now: float) -> list[Lease]:
        """Let go of leases whose locks have all ended; gives those with open records.

        What is said of them later is still sent, alone: the broker is the judge.
        """
        ended = [lease for lease in self._held if lease.last_deadline() <= now]
        for lease in ended:
            del self._held[lease]
        return [lease for lease in ended if lease.has_open]

    # How one partition's answer is taken.

    def _partition_answered(
        self,
        pieces: list[Piece],
        answer: FetchedPartition,
        renewed_until: float,
        now: float,
    ) -> None:
        code = answer.acknowledge_error
        error = AcknowledgeError(
            code, code_name(code), answer.acknowledge_message or ""
        )
        match reaction(reactions.ACKNOWLEDGE, code):
            case Reaction.PROCEED:
                for piece in pieces:
                    self._done(piece, None, renewed_until)
            case Reaction.SPLIT:
                self._refused(pieces, error, now)
            case Reaction.RETRY:
                self.to_retry = True
                self._waiting += [p for p in pieces if now < p.deadline]
                self._failed([p for p in pieces if now >= p.deadline], error)
            case _:
                self._failed(pieces, error)

    def _refused(
        self, pieces: list[Piece], error: AcknowledgeError, now: float
    ) -> None:
        if len(pieces) > 1:
            # Each by itself: none of them need be at fault.
            for piece in pieces:
                piece.splits -= 1
            self._waiting += pieces
            return
        piece = pieces[0]
        if piece.is_single or piece.splits <= 0 or now >= piece.deadline:
            self._failed(pieces, error)
            return
        self._waiting += self._halves(piece)

    def _halves(self, piece: Piece) -> list[Piece]:
        for ticket in piece.tickets:
            ticket.waiting += 1
        left, right = split(piece.ranges)
        budget = piece.splits - 1
        return [
            Piece(piece.lease, half, piece.deadline, budget, piece.tickets)
            for half in (left, right)
        ]

    def _fits(self, piece: Piece) -> bool:
        """A piece that was refused once travels alone from then on."""
        others = self._under_way[piece.lease.share_partition]
        return all(p.splits == SPLITS for p in (piece, *others))

    def _failed(self, pieces: Sequence[Piece], error: AcknowledgeError) -> None:
        for piece in pieces:
            self._done(piece, error, 0.0)

    def _done(
        self, piece: Piece, error: AcknowledgeError | None, renewed_until: float
    ) -> None:
        results = piece.results(error)
        self._journal.results += results
        for ticket in piece.tickets:
            ticket.waiting -= 1
            ticket.results += results
        lease = piece.lease
        lease.settled(piece.ranges, renewed_until=renewed_until)
        if lease in self._held and lease.is_settled:
            del self._held[lease]


_LEFT_OUT: Final = AcknowledgeError(
    Code.UNKNOWN_SERVER_ERROR,
    "UNKNOWN_SERVER_ERROR",
    "the answer leaves the partition out: whether it was applied is unknown",
)


def _session_lost(term: Term) -> AcknowledgeError:
    code = Code.SHARE_SESSION_NOT_FOUND
    return AcknowledgeError(
        code, code.name, f"{term.why}; the broker lets go what it had not heard of"
    )


def _urgency(piece: Piece, now: float) -> int:
    left = piece.deadline - now
    if left <= 0:
        return 2
    return 0 if left < NEAR_ITS_END else 1


def _merged(pieces: list[Piece]) -> tuple[Range, ...]:
    if len(pieces) == 1:
        return pieces[0].ranges
    return ranges_of(sorted(run for p in pieces for run in runs_of(p.ranges)))


def _results(
    lease: Lease, runs: Sequence[Run], error: AcknowledgeError | None
) -> list[AcknowledgeResult]:
    partition = lease.share_partition.partition
    return [
        AcknowledgeResult(
            lease.topic, partition, first, last, AcknowledgeType(kind), error
        )
        for first, last, kind in runs
        if kind != GAP
    ]
