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
from sharecons.protocol.acknowledge.ack_batches import (
    AckBatch,
    choose_batches,
    merge_ranges,
)
from sharecons.protocol.acknowledge.archived import archived_by
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.lock_scope import LockScope
from sharecons.protocol.acknowledge.ranges import Run, ranges_of, runs_of
from sharecons.protocol.acknowledge.redeliveries import Redeliveries
from sharecons.protocol.acknowledge.result_log import (
    AcknowledgeError,
    AcknowledgeResult,
    ResultLog,
)
from sharecons.protocol.acknowledge.results import (
    CommitWaiter,
    join_results,
    lock_overrun,
    results_of,
)
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.error_actions import ErrorAction, action_for
from sharecons.protocol.messages import PartitionResponse, Range, SharePartition

__all__ = [
    "AckBatcher",
    "AcknowledgeError",
    "AcknowledgeResult",
    "CommitWaiter",
    "ResultLog",
    "join_results",
]


class AckBatcher:
    """Collects what is said of one leader's records; the owner of their leases.

    Attributes:
        journal: the consumer's.
        renewable: the leader knows Renew (ShareAcknowledge version 2).
        to_retry: the last answer asked for patience before sending again.
        redeliveries: which partitions' records are released again and again.
    """

    def __init__(self, wake: Callable[[], None], result_log: ResultLog) -> None:
        self.renewable = True
        self.needs_backoff = False
        self.redeliveries = Redeliveries()
        self._wake = wake
        self.result_log = result_log
        self._leases: dict[Lease, None] = {}
        self._uncollected: list[Lease] = []
        self._queued: list[AckBatch] = []
        self._in_flight: dict[SharePartition, list[AckBatch]] = {}

    @property
    def has_pending(self) -> bool:
        """True while something is to be sent."""
        return bool(self._uncollected or self._queued)

    @property
    def has_uncollected(self) -> bool:
        """True while something was said that `freeze` did not see."""
        return bool(self._uncollected)

    @property
    def has_in_flight(self) -> bool:
        """True while a request that carries some is not answered."""
        return bool(self._in_flight)

    @property
    def leases(self) -> tuple[Lease, ...]:
        """Leases of which something is left to say, send or hear."""
        return tuple(self._leases)

    @property
    def has_open(self) -> bool:
        """True while the application may say something of this leader's records."""
        return any(lease.has_open for lease in self._leases)

    @property
    def has_renewals(self) -> bool:
        """True while a renewal is to be sent; `freeze` first."""
        return any(piece.has_renewals for piece in self._queued)

    @property
    def has_releases(self) -> bool:
        """True while a release is to be sent; `freeze` first."""
        return any(piece.has_releases for piece in self._queued)

    # What leases tell.

    def add_lease(self, lease: Lease) -> None:
        self._leases[lease] = None

    def on_acknowledged(self, lease: Lease) -> None:
        if lease.lock_scope.ended:
            return
        self._wake()  # which may raise
        self._uncollected.append(lease)

    def reject_late_ack(self, lease: Lease, runs: Sequence[Run]) -> None:
        self.result_log.results += results_of(
            lease, runs, _session_lost_error(lease.lock_scope)
        )
        self.result_log.wake()

    # What the leader's requests take, and what becomes of them.

    def collect(self, waiter: CommitWaiter | None = None) -> None:
        """Turn marks into pieces; a ticket waits for them, and for what went before."""
        dirty, self._uncollected = self._uncollected, []
        for lease in dirty:
            self._queued += self._new_batches(lease)
        if waiter is not None:
            for piece in self._all_batches():
                piece.add_waiters((waiter,))

    def fail_renewals(self) -> None:
        """Fail what is to be renewed: the session is being closed.

        What was said beside a renewal is sent; the other records are let go.
        """
        self.collect()
        while self.has_renewals:
            parts = [part for p in self._queued for part in p.split_renewals()]
            self._queued = [part for part in parts if not part.has_renewals]
            self._fail([part for part in parts if part.has_renewals], _SESSION_CLOSING)
            self.collect()

    def take_ranges(self, now: float) -> dict[SharePartition, tuple[Range, ...]]:
        """Pick what the next request carries; it is under way from here on."""
        self.collect()
        self._in_flight, self._queued = choose_batches(self._queued, now)
        return {
            share_partition: merge_ranges(pieces)
            for share_partition, pieces in self._in_flight.items()
        }

    def on_response(
        self,
        partitions: Sequence[PartitionResponse],
        *,
        error: AcknowledgeError | None,
        renewed_until: float,
        now: float,
    ) -> None:
        """The request that carried the last `take` was answered.

        `error` is one for all of it; else each partition has its own, and one
        that the answer leaves out has failed.
        """
        self.needs_backoff = False
        told = {answer.share_partition: answer for answer in partitions}
        under_way, self._in_flight = self._in_flight, {}
        for share_partition, pieces in under_way.items():
            if error is not None:
                self._fail(pieces, error)
            elif share_partition not in told:
                self._fail(pieces, _MISSING_IN_RESPONSE)
            else:
                self._on_partition_response(
                    pieces, told[share_partition], renewed_until, now
                )

    def resend(self) -> None:
        """The request that carried the last `take` was not applied: send it again."""
        self.needs_backoff = False
        for pieces in self._in_flight.values():
            self._queued += pieces
        self._in_flight = {}

    def on_session_lost(self, lock_scope: LockScope) -> None:
        """The session's life is over, and with it the locks of all its leases."""
        self.needs_backoff = False
        error = _session_lost_error(lock_scope)
        leases = dict.fromkeys([*self._leases, *self._uncollected])
        self._leases = {}
        self._uncollected = []
        failed: list[AckBatch] = []
        while pieces := self._all_batches():
            failed += pieces
            self._in_flight, self._queued = {}, []
            self._fail(pieces, error)
        leases |= dict.fromkeys(piece.lease for piece in failed)
        for lease in leases:
            self.result_log.results += results_of(lease, lease.abandon(), error)
        for piece in failed:
            piece.lease.fail_settled(piece.ranges)

    def forget_expired(self, now: float) -> list[Lease]:
        """Let go of leases whose locks have all ended; gives those with open records.

        What is said of them later is still sent, alone: the broker is the judge.
        """
        ended = [lease for lease in self._leases if lease.last_deadline() <= now]
        for lease in ended:
            del self._leases[lease]
        return [lease for lease in ended if lease.has_open]

    # How one partition's answer is taken.

    def _on_partition_response(
        self,
        pieces: list[AckBatch],
        answer: PartitionResponse,
        renewed_until: float,
        now: float,
    ) -> None:
        code = answer.acknowledge_error
        if code == Code.NONE:
            for piece in pieces:
                self._finish(piece, None, renewed_until)
            return
        error = AcknowledgeError(
            code, code_name(code), answer.acknowledge_message or ""
        )
        match action_for(error_actions.ACKNOWLEDGE, code):
            case ErrorAction.SPLIT_BATCH:
                self._on_rejected(pieces, error, now)
            case ErrorAction.RETRY:
                self.needs_backoff = True
                self._queued += [p for p in pieces if now < p.deadline]
                self._fail([p for p in pieces if now >= p.deadline], error)
            case _:
                self._fail(pieces, error)

    def _on_rejected(
        self, pieces: list[AckBatch], error: AcknowledgeError, now: float
    ) -> None:
        for piece in pieces:
            piece.rejected = True
        if len(pieces) > 1:
            # Each by itself: none of them need be at fault.
            self._queued += pieces
            return
        piece = pieces[0]
        if now >= piece.deadline:
            reason = lock_overrun(piece.lease, piece.deadline, now)
            message = f"{reason} ({error.message})" if error.message else reason
            self._fail(pieces, AcknowledgeError(error.code, error.name, message))
            return
        halves = piece.split_in_half()
        if not halves:
            self._fail(pieces, error)
        self._queued += halves

    def _new_batches(self, lease: Lease) -> list[AckBatch]:
        pieces = [
            AckBatch(lease, ranges_of(runs), deadline)
            for deadline, runs in lease.take_runs()
        ]
        for piece in pieces:
            if piece.has_releases or self.redeliveries.has_releases:
                self.redeliveries.on_acknowledged(lease, piece.ranges)
        return pieces

    def _all_batches(self) -> list[AckBatch]:
        under_way = (piece for pieces in self._in_flight.values() for piece in pieces)
        return [*self._queued, *under_way]

    def _fail(self, pieces: Sequence[AckBatch], error: AcknowledgeError) -> None:
        for piece in pieces:
            self._finish(piece, error, 0.0)

    def _finish(
        self, piece: AckBatch, error: AcknowledgeError | None, renewed_until: float
    ) -> None:
        results: list[AcknowledgeResult] = []
        limit = self.result_log.delivery_limit
        if error is None and 0 < limit <= piece.lease.highest_delivery_count:
            runs = runs_of(piece.ranges)
            self.result_log.archived += archived_by(piece.lease, runs, limit)
        if error is None and not piece.waiters and not self.result_log.has_listener:
            self.result_log.applied_count += piece.record_count
        else:
            results = piece.results(error)
            self.result_log.results += results
        lease = piece.lease
        lease.on_settled(piece.ranges, renewed_until=renewed_until)
        if piece.waiters and piece.has_renewals and lease.is_queued:
            for said in self._new_batches(lease):
                self._queued.append(said.add_waiters(piece.waiters))
        for ticket in piece.waiters:
            ticket.outstanding -= 1
            ticket.results += results
        if lease in self._leases and lease.is_settled:
            del self._leases[lease]


_MISSING_IN_RESPONSE: Final = AcknowledgeError(
    Code.UNKNOWN_SERVER_ERROR,
    "UNKNOWN_SERVER_ERROR",
    "the answer leaves the partition out: whether it was applied is unknown",
)


_SESSION_CLOSING: Final = AcknowledgeError(
    Code.SHARE_SESSION_NOT_FOUND,
    Code.SHARE_SESSION_NOT_FOUND.name,
    "the session is being closed: the record is let go, not renewed",
)


def _session_lost_error(term: LockScope) -> AcknowledgeError:
    code = Code.SHARE_SESSION_NOT_FOUND
    return AcknowledgeError(
        code, code.name, f"{term.reason}; the broker lets go what it had not heard of"
    )
