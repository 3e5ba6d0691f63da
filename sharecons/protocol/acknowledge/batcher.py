"""The acknowledgement batcher of one leader.

An acknowledgement is sent to the leader that returned its record, in the same share
session, or it fails. `leader` decides when requests are sent.

Theory of operation
-------------------
A lease reports pending acknowledgements. `take_ranges` turns them into batches, one per
lease, and chooses those for the next request (`ack_batches`). They are in flight until
its response: a leader has one request at a time. A lost connection leaves their result
unknown; a broker that rejects the session's epoch has not applied them, so they are
queued again.

Brokers apply a partition's acknowledgements all or nothing (measured on 4.3.0). So a
batch that is rejected is sent alone, then split in half, until the offsets at fault are
alone; the number of splits is limited.

Every batch ends in results, for the callback and for commit(): a `CommitWaiter` counts
its outstanding batches. It also waits for acknowledgements made during a renewal that
it waits for.
"""

from collections.abc import Callable, Sequence

from sharecons.protocol import error_actions
from sharecons.protocol.acknowledge.ack_batches import (
    AckBatch,
    choose_batches,
    merge_ranges,
)
from sharecons.protocol.acknowledge.ack_errors import (
    MISSING_IN_RESPONSE,
    SESSION_CLOSING,
    lock_overrun,
    reacquired_error,
    session_lost_error,
)
from sharecons.protocol.acknowledge.archived import archived_by, archived_by_loss
from sharecons.protocol.acknowledge.commit_waiter import CommitWaiter
from sharecons.protocol.acknowledge.delayed_releases import DelayedReleases
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.lock_scope import LockScope
from sharecons.protocol.acknowledge.redelivered_leases import RedeliveredLeases
from sharecons.protocol.acknowledge.redeliveries import Redeliveries
from sharecons.protocol.acknowledge.result_log import (
    AcknowledgeFailure,
    AcknowledgeResult,
    ResultLog,
)
from sharecons.protocol.acknowledge.results import results_of
from sharecons.protocol.acknowledge.runs import Run
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.error_actions import ErrorAction, action_for
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import PartitionResponse, Range

__all__ = ["AckBatcher"]


class AckBatcher:
    """The acknowledgements of one leader's records; the owner of their leases.

    Attributes:
        result_log: the results of the consumer's acknowledgements.
        renewable: the leader supports Renew (ShareAcknowledge version 2).
        needs_backoff: the last response had an error to retry after a backoff.
        redeliveries: the partitions whose records are released again and again.
    """

    def __init__(self, wake: Callable[[], None], result_log: ResultLog) -> None:
        self.renewable = True
        self.needs_backoff = False
        self.redeliveries = Redeliveries()
        self._wake = wake
        self.result_log = result_log
        self._leases: dict[Lease, None] = {}
        self._redelivered = RedeliveredLeases()
        self._delayed = DelayedReleases(result_log)
        self._uncollected: list[Lease] = []
        self._queued: list[AckBatch] = []
        self._in_flight: dict[SharePartition, list[AckBatch]] = {}

    @property
    def has_pending(self) -> bool:
        """True if an acknowledgement must be sent."""
        return bool(self._uncollected or self._queued)

    @property
    def has_uncollected(self) -> bool:
        """True if an acknowledgement is not in a batch yet; see `collect`."""
        return bool(self._uncollected)

    @property
    def leases(self) -> tuple[Lease, ...]:
        """The leases with records that are not settled."""
        return tuple(self._leases)

    @property
    def has_open(self) -> bool:
        """True if the application can still acknowledge a record of this leader.

        Records with a delayed release do not count: `next_delay_check` is about them.
        """
        return any(lease.has_open for lease in self._leases)

    @property
    def has_renewals(self) -> bool:
        """True if a renewal must be sent; call `collect` first."""
        return any(batch.has_renewals for batch in self._queued)

    @property
    def has_releases(self) -> bool:
        """True if a release must be sent; call `collect` first."""
        return any(batch.has_releases for batch in self._queued)

    @property
    def next_delay_check(self) -> float:
        """When to call `update_delays`; infinity without delayed releases."""
        return self._delayed.next_check

    # Calls of leases.

    def add_lease(self, lease: Lease) -> None:
        self._leases[lease] = None
        self._redelivered.add(lease, self.result_log.clock())

    def on_acknowledged(self, lease: Lease) -> None:
        if lease.lock_scope.ended:
            return
        self._wake()  # first: it raises once the event loop has ended
        self._uncollected.append(lease)

    def on_delayed(self, lease: Lease, offsets: Sequence[int], due: float) -> None:
        self._delayed.add(lease, offsets, due, self.result_log.clock())
        self._wake()  # this can raise

    def reject_late_ack(self, lease: Lease, runs: Sequence[Run]) -> None:
        self.result_log.results += results_of(
            lease, runs, session_lost_error(lease.lock_scope)
        )
        self.result_log.wake()

    # Calls of the leader.

    def collect(self, waiter: CommitWaiter | None = None) -> None:
        """Make batches of pending acknowledgements; `waiter` waits for all batches."""
        dirty, self._uncollected = self._uncollected, []
        for lease in dirty:
            self._queued += self._new_batches(lease)
        if waiter is not None:
            for batch in self._all_batches():
                batch.add_waiters((waiter,))

    def update_delays(self, now: float) -> None:
        """Release the records whose delay has passed, and renew the locks of others."""
        if now >= self._delayed.next_check:
            self._delayed.update(now, renewable=self.renewable)

    def release_delayed(self) -> None:
        """Release all records whose releases are delayed, before their delay ends."""
        self._delayed.release_all()

    def update_release_pauses(self, now: float) -> bool:
        """Pause partitions whose records are released again and again.

        Return whether a pause starts.
        """
        self.collect()
        return self.redeliveries.has_releases and self.redeliveries.update_pauses(now)

    def fail_renewals(self) -> None:
        """Fail all renewals, as the session is being closed.

        Other acknowledgements of their records are sent; the rest is released.
        """
        self.collect()
        # Failing one makes pending what waited for its result, even another renewal.
        while self.has_renewals:
            parts = [part for p in self._queued for part in p.split_renewals()]
            self._queued = [part for part in parts if not part.has_renewals]
            self._fail([part for part in parts if part.has_renewals], SESSION_CLOSING)
            self.collect()

    def take_ranges(self, now: float) -> dict[SharePartition, tuple[Range, ...]]:
        """Return the ranges for the next request; from now on they are in flight."""
        self.collect()
        self._fail_reacquired(now)
        self._in_flight, self._queued = choose_batches(self._queued, now)
        return {
            share_partition: merge_ranges(batches)
            for share_partition, batches in self._in_flight.items()
        }

    def on_response(
        self,
        partitions: Sequence[PartitionResponse],
        *,
        error: AcknowledgeFailure | None,
        renewed_until: float,
        now: float,
    ) -> None:
        """Handle the response to the request with the last `take_ranges`.

        Args:
            partitions: the response's partitions; one that is missing has failed.
            error: an error of the whole request, or None.
            renewed_until: the new deadline of renewed records; 0.0 without renewals.
            now: the time of the response.
        """
        self.needs_backoff = False
        by_partition = {response.share_partition: response for response in partitions}
        in_flight, self._in_flight = self._in_flight, {}
        for share_partition, batches in in_flight.items():
            if error is not None:
                self._fail(batches, error)
            elif share_partition not in by_partition:
                self._fail(batches, MISSING_IN_RESPONSE)
            else:
                self._on_partition_response(
                    batches, by_partition[share_partition], renewed_until, now
                )

    def fail_sent(self, code: int, message: str, now: float) -> None:
        """Fail the last request's acknowledgements with the error of its response."""
        error = AcknowledgeFailure(code, code_name(code), message)
        self.on_response((), error=error, renewed_until=0.0, now=now)

    def resend(self) -> None:
        """Queue the last request's batches again: the broker did not apply them."""
        self.needs_backoff = False
        for batches in self._in_flight.values():
            self._queued += batches
        self._in_flight = {}

    def on_session_lost(self, lock_scope: LockScope) -> None:
        """Fail all acknowledgements: the session has ended, and all locks with it."""
        self.needs_backoff = False
        error = session_lost_error(lock_scope)
        leases = dict.fromkeys([*self._leases, *self._uncollected])
        leases |= dict.fromkeys(self._delayed.clear())
        self._leases = {}
        self._uncollected = []
        failed: list[AckBatch] = []
        # Failing a renewal queues acknowledgements made during it, for its commit.
        while batches := self._all_batches():
            failed += batches
            self._in_flight, self._queued = {}, []
            self._fail(batches, error)
        leases |= dict.fromkeys(batch.lease for batch in failed)
        for lease in leases:
            self.result_log.results += results_of(lease, lease.abandon(), error)
            self._note_archived(lease)
        # Settled by `_fail`; as failed ones, later verbs of these records raise.
        for batch in failed:
            batch.lease.fail_settled(batch.runs)

    def forget_expired(self, now: float) -> list[Lease]:
        """Drop leases whose locks have all expired; return those with open records.

        Later acknowledgements of them are still sent, alone: the broker decides.
        """
        ended = [lease for lease in self._leases if lease.locks.last() <= now]
        for lease in ended:
            del self._leases[lease]
        lost = [lease for lease in ended if lease.has_open]
        for lease in lost:
            self._note_archived(lease)
        return lost

    def _note_archived(self, lease: Lease) -> None:
        """Report the records that the broker archived when a lease lost its locks."""
        log = self.result_log
        if log.reports_lost and (found := archived_by_loss(lease, log.delivery_limit)):
            log.archived += found
            log.wake()

    # Responses.

    def _on_partition_response(
        self,
        batches: list[AckBatch],
        response: PartitionResponse,
        renewed_until: float,
        now: float,
    ) -> None:
        code = response.acknowledge_error
        if code == Code.NONE:
            for batch in batches:
                self._finish(batch, None, renewed_until)
            return
        error = AcknowledgeFailure(
            code, code_name(code), response.acknowledge_message or ""
        )
        match action_for(error_actions.ACKNOWLEDGE, code):
            case ErrorAction.SPLIT_BATCH:
                self._on_rejected(batches, error, now)
            case ErrorAction.RETRY:
                self.needs_backoff = True
                # After its deadline a record can have been delivered to another member.
                self._queued += [p for p in batches if now < p.deadline]
                self._fail([p for p in batches if now >= p.deadline], error)
            case _:
                self._fail(batches, error)

    def _fail_reacquired(self, now: float) -> None:
        """Fail acknowledgements whose locks have ended, if later leases have them."""
        if all(now < batch.deadline for batch in self._queued):
            return
        redelivered = self._redelivered.held(now)
        queued, self._queued = self._queued, []
        for batch in queued:
            if now < batch.deadline:
                self._queued.append(batch)
                continue
            reacquired, rest = batch.split_reacquired(redelivered)
            if rest is not None:
                self._queued.append(rest)
            if reacquired is not None:
                self.result_log.overrun_count += reacquired.record_count
                reason = lock_overrun(batch.lease, batch.deadline, now)
                self._fail([reacquired], reacquired_error(reason))

    def _on_rejected(
        self, batches: list[AckBatch], error: AcknowledgeFailure, now: float
    ) -> None:
        for batch in batches:
            batch.rejected = True
        if len(batches) > 1:
            # Send each one alone: possibly only one of them is at fault.
            self._queued += batches
            return
        batch = batches[0]
        if now >= batch.deadline:
            # All of its locks have ended together, so halves would be rejected as well.
            self.result_log.overrun_count += batch.record_count
            reason = lock_overrun(batch.lease, batch.deadline, now)
            message = f"{reason} ({error.message})" if error.message else reason
            self._fail(batches, AcknowledgeFailure(error.code, error.name, message))
            return
        parts = batch.split_in_half()
        if not parts:
            self._fail(batches, error)
        self._queued += parts

    def _new_batches(self, lease: Lease) -> list[AckBatch]:
        batches = [
            AckBatch(lease, runs, deadline) for deadline, runs in lease.take_runs()
        ]
        for batch in batches:
            if batch.has_releases or self.redeliveries.has_releases:
                self.redeliveries.on_acknowledged(lease, batch.runs)
        return batches

    def _all_batches(self) -> list[AckBatch]:
        in_flight = (batch for batches in self._in_flight.values() for batch in batches)
        return [*self._queued, *in_flight]

    def _fail(self, batches: Sequence[AckBatch], error: AcknowledgeFailure) -> None:
        for batch in batches:
            self._finish(batch, error, 0.0)

    def _finish(
        self, batch: AckBatch, error: AcknowledgeFailure | None, renewed_until: float
    ) -> None:
        # This runs for every batch: results are made only if they are read.
        results: list[AcknowledgeResult] = []
        limit = self.result_log.delivery_limit
        if error is None and 0 < limit <= batch.lease.highest_delivery_count:
            self.result_log.archived += archived_by(batch.lease, batch.runs, limit)
        if error is not None or batch.waiters or self.result_log.has_listener:
            results = batch.results(error)
            self.result_log.results += results
        lease = batch.lease
        lease.on_settled(batch.runs, renewed_until=renewed_until)
        if batch.waiters and batch.has_renewals and lease.is_queued:
            for following in self._new_batches(lease):
                self._queued.append(following.add_waiters(batch.waiters))
        for waiter in batch.waiters:
            waiter.outstanding -= 1
            waiter.results += results
        if lease in self._leases and lease.is_settled:
            del self._leases[lease]
