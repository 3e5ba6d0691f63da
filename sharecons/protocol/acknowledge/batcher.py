"""The acknowledgement batcher of one leader: what is to be said, in which request.

Rule 1: an acknowledgement is sent to the leader that its record came from, in
the session's life in which it came, or it fails; it is never sent elsewhere.
Rule 2: this file does not know when requests go out; `leader` decides that.

Theory of operation
-------------------
Leases say that something was marked; `take` turns the marks into pieces, one for
a lease, and takes those that `pieces` lets share the next request. A piece that
was refused is halved and sent again, until the offsets that spoil it stand alone;
a budget bounds that.

Every piece ends in results, for the callback and for whoever waits in commit():
a `Ticket` counts the pieces that it waits for. What was said during a renewal is
waited for as the renewal is.
"""

from collections.abc import Callable, Sequence
from typing import Final

from sharecons.protocol import error_actions
from sharecons.protocol.acknowledge.ack_batches import Piece, choose, merged
from sharecons.protocol.acknowledge.archived import archived_by
from sharecons.protocol.acknowledge.leases import Lease, Term
from sharecons.protocol.acknowledge.ranges import Run, ranges_of, runs_of
from sharecons.protocol.acknowledge.redeliveries import Redeliveries
from sharecons.protocol.acknowledge.result_log import (
    AcknowledgeError,
    AcknowledgeResult,
    Journal,
)
from sharecons.protocol.acknowledge.results import (
    Ticket,
    join_results,
    lock_overrun,
    results_of,
)
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.error_actions import Reaction, reaction
from sharecons.protocol.messages import FetchedPartition, Range, SharePartition

__all__ = [
    "AcknowledgeError",
    "AcknowledgeResult",
    "Acknowledgements",
    "Journal",
    "Ticket",
    "join_results",
]


class Acknowledgements:
    """Collects what is said of one leader's records; the owner of their leases.

    Attributes:
        journal: the consumer's.
        renewable: the leader knows Renew (ShareAcknowledge version 2).
        to_retry: the last answer asked for patience before sending again.
        redeliveries: which partitions' records are released again and again.
    """

    def __init__(self, wake: Callable[[], None], journal: Journal) -> None:
        self.renewable = True
        self.to_retry = False
        self.redeliveries = Redeliveries()
        self._wake = wake
        self.journal = journal
        self._held: dict[Lease, None] = {}
        self._dirty: list[Lease] = []
        self._waiting: list[Piece] = []
        self._under_way: dict[SharePartition, list[Piece]] = {}

    @property
    def pending(self) -> bool:
        """True while something is to be sent."""
        return bool(self._dirty or self._waiting)

    @property
    def unseen(self) -> bool:
        """True while something was said that `freeze` did not see."""
        return bool(self._dirty)

    @property
    def under_way(self) -> bool:
        """True while a request that carries some is not answered."""
        return bool(self._under_way)

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

    @property
    def releases(self) -> bool:
        """True while a release is to be sent; `freeze` first."""
        return any(piece.releases for piece in self._waiting)

    # What leases tell.

    def acquired(self, lease: Lease) -> None:
        self._held[lease] = None

    def marked(self, lease: Lease) -> None:
        if lease.term.over:
            return
        self._wake()  # which may raise
        self._dirty.append(lease)

    def forfeited(self, lease: Lease, runs: Sequence[Run]) -> None:
        self.journal.results += results_of(lease, runs, _session_lost(lease.term))
        self.journal.wake()

    # What the leader's requests take, and what becomes of them.

    def freeze(self, ticket: Ticket | None = None) -> None:
        """Turn marks into pieces; a ticket waits for them, and for what went before."""
        dirty, self._dirty = self._dirty, []
        for lease in dirty:
            self._waiting += self._new_pieces(lease)
        if ticket is not None:
            for piece in self._all_pieces():
                piece.waited_for((ticket,))

    def stop_renewing(self) -> None:
        """Fail what is to be renewed: the session is being closed.

        What was said beside a renewal is sent; the other records are let go.
        """
        self.freeze()
        while self.renews:
            parts = [part for p in self._waiting for part in p.renewals_apart()]
            self._waiting = [part for part in parts if not part.renews]
            self._failed([part for part in parts if part.renews], _CLOSING)
            self.freeze()

    def take(self, now: float) -> dict[SharePartition, tuple[Range, ...]]:
        """Pick what the next request carries; it is under way from here on."""
        self.freeze()
        self._under_way, self._waiting = choose(self._waiting, now)
        return {
            share_partition: merged(pieces)
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
        self.to_retry = False
        for pieces in self._under_way.values():
            self._waiting += pieces
        self._under_way = {}

    def lost(self, term: Term) -> None:
        """The session's life is over, and with it the locks of all its leases."""
        self.to_retry = False
        error = _session_lost(term)
        leases = dict.fromkeys([*self._held, *self._dirty])
        self._held = {}
        self._dirty = []
        failed: list[Piece] = []
        while pieces := self._all_pieces():
            failed += pieces
            self._under_way, self._waiting = {}, []
            self._failed(pieces, error)
        leases |= dict.fromkeys(piece.lease for piece in failed)
        for lease in leases:
            self.journal.results += results_of(lease, lease.forsaken(), error)
        for piece in failed:
            piece.lease.lose(piece.ranges)

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
        if code == Code.NONE:
            for piece in pieces:
                self._done(piece, None, renewed_until)
            return
        error = AcknowledgeError(
            code, code_name(code), answer.acknowledge_message or ""
        )
        match reaction(error_actions.ACKNOWLEDGE, code):
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
        for piece in pieces:
            piece.refused = True
        if len(pieces) > 1:
            # Each by itself: none of them need be at fault.
            self._waiting += pieces
            return
        piece = pieces[0]
        if now >= piece.deadline:
            reason = lock_overrun(piece.lease, piece.deadline, now)
            message = f"{reason} ({error.message})" if error.message else reason
            self._failed(pieces, AcknowledgeError(error.code, error.name, message))
            return
        halves = piece.halves()
        if not halves:
            self._failed(pieces, error)
        self._waiting += halves

    def _new_pieces(self, lease: Lease) -> list[Piece]:
        pieces = [
            Piece(lease, ranges_of(runs), deadline) for deadline, runs in lease.take()
        ]
        for piece in pieces:
            if piece.releases or self.redeliveries.watches:
                self.redeliveries.acknowledged(lease, piece.ranges)
        return pieces

    def _all_pieces(self) -> list[Piece]:
        under_way = (piece for pieces in self._under_way.values() for piece in pieces)
        return [*self._waiting, *under_way]

    def _failed(self, pieces: Sequence[Piece], error: AcknowledgeError) -> None:
        for piece in pieces:
            self._done(piece, error, 0.0)

    def _done(
        self, piece: Piece, error: AcknowledgeError | None, renewed_until: float
    ) -> None:
        results: list[AcknowledgeResult] = []
        limit = self.journal.delivery_limit
        if error is None and 0 < limit <= piece.lease.highest_delivery_count:
            runs = runs_of(piece.ranges)
            self.journal.archived += archived_by(piece.lease, runs, limit)
        if error is None and not piece.tickets and not self.journal.hears:
            self.journal.applied += piece.records
        else:
            results = piece.results(error)
            self.journal.results += results
        lease = piece.lease
        lease.settled(piece.ranges, renewed_until=renewed_until)
        if piece.tickets and piece.renews and lease.dirty:
            for said in self._new_pieces(lease):
                self._waiting.append(said.waited_for(piece.tickets))
        for ticket in piece.tickets:
            ticket.waiting -= 1
            ticket.results += results
        if lease in self._held and lease.is_settled:
            del self._held[lease]


_LEFT_OUT: Final = AcknowledgeError(
    Code.UNKNOWN_SERVER_ERROR,
    "UNKNOWN_SERVER_ERROR",
    "the answer leaves the partition out: whether it was applied is unknown",
)


_CLOSING: Final = AcknowledgeError(
    Code.SHARE_SESSION_NOT_FOUND,
    Code.SHARE_SESSION_NOT_FOUND.name,
    "the session is being closed: the record is let go, not renewed",
)


def _session_lost(term: Term) -> AcknowledgeError:
    code = Code.SHARE_SESSION_NOT_FOUND
    return AcknowledgeError(
        code, code.name, f"{term.why}; the broker lets go what it had not heard of"
    )
