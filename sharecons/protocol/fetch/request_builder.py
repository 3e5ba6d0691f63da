"""The contents of the next ShareFetch or ShareAcknowledge to one leader.

`leader` decides when a request is sent. Every request built here is sent: building it
takes the next session epoch, and its acknowledgements are in flight.
"""

import math
from typing import Final, final

from sharecons._record import RELEASE, RENEW
from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.linger import AckLinger
from sharecons.protocol.fetch.arrival_rate import MAX_GATHER_TIME, ArrivalRate
from sharecons.protocol.fetch.empty_responses import EmptyResponses
from sharecons.protocol.fetch.max_wait import MaxWait
from sharecons.protocol.fetch.partition_rotation import PartitionRotation
from sharecons.protocol.fetch.pauses import FetchablePartitions, FetchPauses
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.fetch.quota import Quota
from sharecons.protocol.fetch.session_manager import CLOSING, OPENING, ShareSession
from sharecons.protocol.messages import (
    FetchSettings,
    Range,
    ShareAcknowledge,
    ShareFetch,
    SharePartition,
)

__all__ = ["RequestBuilder", "SentRequest"]

THROTTLED_TO_REPORT: Final = 2
"""The number of consecutive throttled responses after which they are reported."""

BACKLOG_FRACTION: Final = 4
"""A fetch that returned at least 1/4 of the requested records shows a backlog."""


class RequestBuilder:
    """Builds requests from the state of one leader's parts."""

    def __init__(
        self,
        settings: FetchSettings,
        session: ShareSession,
        prefetch: Prefetch,
        batcher: AckBatcher,
        arrival_rate: ArrivalRate,
        linger: AckLinger,
        max_wait: MaxWait,
        empty_responses: EmptyResponses,
        pauses: FetchPauses,
    ) -> None:
        self._settings = settings
        self._session = session
        self._prefetch = prefetch
        self._batcher = batcher
        self._arrival_rate = arrival_rate
        self._linger = linger
        self._max_wait = max_wait
        self._empty_responses = empty_responses
        self._fetchable = FetchablePartitions(pauses)
        self._rotation = PartitionRotation(settings.member_id)
        self._quota = Quota()
        self._records_lost_until = -math.inf

    def build_acknowledge(
        self, now: float, *, closing: bool = False
    ) -> ShareAcknowledge:
        """Build a request with acknowledgements; close the session if none remain."""
        self._linger.end()
        acknowledged = self._batcher.take_ranges(now)
        epoch = self._session.next_epoch()
        if closing and not self._batcher.has_pending:
            epoch = CLOSING  # otherwise batches to send alone need more requests
            self._records_lost_until = -math.inf
            self._empty_responses.on_reopened()
        return ShareAcknowledge(
            group_id=self._settings.group_id,
            member_id=self._settings.member_id,
            share_session_epoch=epoch,
            is_renew_ack=any(
                RENEW in r.kinds for ranges in acknowledged.values() for r in ranges
            ),
            acknowledgements=acknowledged,
        )

    def build_fetch(
        self,
        now: float,
        partitions: frozenset[SharePartition],
        leaders: int,
        *,
        backlog: bool = False,
        pipelined: bool = False,
        opening_only: bool = False,
    ) -> ShareFetch:
        """Build a fetch.

        Args:
            now: the current time.
            partitions: the partitions to fetch.
            leaders: how many leaders share the prefetch allowance.
            backlog: more records are available. The fetch then carries acknowledgements
                that linger, and requests one part of many partitions in turn; but the
                first fetch requests all, so that the broker loads their state.
            pipelined: another fetch is in flight; this one does not wait.
            opening_only: acquire nothing, only open a session for acknowledgements from
                the session before.
        """
        partitions = self.fetchable(partitions, now)
        redeliveries = self._batcher.redeliveries
        requested, max_wait = partitions, math.inf
        if redeliveries.has_releases:
            max_wait = redeliveries.next_pause_end(partitions, now) - now
            requested = partitions = redeliveries.fetchable(partitions, now)
        if pipelined:
            max_wait = 0.0
        elif backlog and self._session.is_open:
            requested = self._rotation.next(partitions)
        if requested is not partitions:
            max_wait = 0.0  # other partitions may have records
        self._batcher.forget_expired(now)
        acknowledged = self._take_acknowledgements(now, backlog)
        released = any(
            RELEASE in r.kinds for ranges in acknowledged.values() for r in ranges
        )
        added, forgotten = self._session.update(requested, acknowledged.keys())
        min_bytes = self._settings.min_bytes
        # A record released by this fetch would not end its wait. And a fetch with a
        # `max_wait` of 0 would wait briefly for a `min_bytes` that is not there yet.
        may_wait = max_wait > 0.0 and not (opening_only or released)
        gathered = min(self._arrival_rate.min_bytes, self._settings.max_bytes)
        if may_wait and gathered > min_bytes:
            min_bytes, max_wait = gathered, min(max_wait, MAX_GATHER_TIME)
        # If throttled again, as few records as possible use up a delivery.
        failed = self._quota.failures > 0
        growth = self._empty_responses.growth
        limit = (
            1
            if failed
            else self._prefetch.record_limit(leaders, len(requested), growth)
        )
        size = self._prefetch.byte_limit(
            limit, len(requested), self._settings.max_bytes
        )
        return ShareFetch(
            group_id=self._settings.group_id,
            member_id=self._settings.member_id,
            share_session_epoch=self._session.next_epoch(),
            max_wait=self._wait_time(now, max_wait) if may_wait else 0.0,
            min_bytes=min_bytes,
            # With 0 bytes the broker acquires nothing.
            max_bytes=0 if opening_only else self._quota.limit_bytes(size, now),
            max_records=limit,
            record_limit=failed
            or self._settings.record_limit
            or not self._prefetch.takes_whole_batches(leaders),
            added=added,
            forgotten=forgotten,
            acknowledgements=acknowledged,
        )

    def update_release_pauses(self, now: float) -> None:
        """Pause partitions whose records are released again and again."""
        self._batcher.collect()
        redeliveries = self._batcher.redeliveries
        if redeliveries.has_releases and redeliveries.update_pauses(now):
            self._prefetch.restart()

    def next_due(
        self, now: float, partitions: frozenset[SharePartition], *, ahead: bool
    ) -> float:
        """Return when a fetch for some of these partitions is due.

        It is due after pauses for a quota, empty responses, errors of partitions and
        released records.
        """
        due = max(self._prefetch.next_due(now, ahead=ahead), self._empty_responses.due)
        due = max(due, self._quota.next_due(self._prefetch.batches.largest, now))
        return max(due, self._pause_end(partitions, now))

    def fetchable(
        self, partitions: frozenset[SharePartition], now: float
    ) -> frozenset[SharePartition]:
        """Return those of the partitions that are not paused for an error."""
        return self._fetchable.select(partitions, now)

    def _pause_end(self, partitions: frozenset[SharePartition], now: float) -> float:
        """Return when one of the partitions may be fetched."""
        fetchable = self._fetchable.select(partitions, now)
        redeliveries = self._batcher.redeliveries
        if fetchable and not redeliveries.has_releases:
            return -math.inf
        if fetchable and redeliveries.fetchable(fetchable, now):
            return -math.inf
        error_ends = self._fetchable.next_pause_end(partitions, now)
        return min(error_ends, redeliveries.next_pause_end(fetchable, now))

    def has_lost_records(self, now: float) -> bool:
        """Return whether a throttled response left records locked.

        False while every response is throttled: the lock then keeps the next fetch from
        using up another delivery.
        """
        return now < self._records_lost_until

    def count_response(
        self,
        request: ShareFetch,
        record_count: int,
        size: int,
        throttle: float,
        now: float,
    ) -> bool:
        """Count a response; return whether to report that all are throttled.

        A response that is empty due to throttling has used up a delivery.
        """
        if record_count:
            self._quota.on_received(size, now)
        elif throttle and request.max_bytes:
            lost = self._prefetch.expected_bytes(request.max_records)
            self._quota.on_throttled(throttle, min(lost, request.max_bytes), now)
            if not self._quota.failures:
                self._records_lost_until = now + self._max_wait.lock_timeout
            return self._quota.failures == THROTTLED_TO_REPORT
        return False

    def can_pipeline(
        self, sent: "SentRequest", partitions: frozenset[SharePartition], now: float
    ) -> bool:
        """Return whether to pipeline a fetch while this response arrives."""
        request = sent.request
        if not isinstance(request, ShareFetch) or not self._rotation.is_undivided(
            partitions
        ):
            return False
        if self._quota.is_known(now):
            return False  # the size of this response is not known yet
        expected = self._prefetch.expected_records(
            request.max_records, request.max_bytes
        )
        has_room = self._prefetch.has_room_for_next(expected, len(partitions))
        return has_room and self._prefetch.next_due(now, coming=expected) <= now

    def found_backlog(self, record_count: int, request: ShareFetch) -> bool:
        """Return whether more records may be available than this fetch returned.

        True after a fetch for a part of the partitions: others may have records.
        """
        full = record_count * BACKLOG_FRACTION >= request.max_records
        return self._rotation.on_response(self._session.partitions, full=full) or full

    def _take_acknowledgements(
        self, now: float, backlog: bool
    ) -> dict[SharePartition, tuple[Range, ...]]:
        """Return the acknowledgements to send with this fetch."""
        if not self._session.is_open:
            return {}  # not allowed in the request that opens a session
        if self._batcher.has_in_flight:
            return {}  # two sets in flight could not be distinguished
        can_piggyback = self._linger.can_piggyback(
            now, self._arrival_rate.fetch_interval
        )
        if not (backlog or can_piggyback or self._batcher.has_releases):
            return {}
        self._linger.end()
        return self._batcher.take_ranges(now)

    def _wait_time(self, now: float, max_wait: float) -> float:
        short = self._batcher.has_open or not self._prefetch.waiting_readers
        return self._max_wait.next(min(max_wait, self._linger.due - now), short=short)


@final
class SentRequest:
    """A request in flight.

    Attributes:
        sent_at: when it was sent; lock deadlines count from this time.
        session_resets, partitions: those of its session at that time.
    """

    __slots__ = ("partitions", "request", "sent_at", "session_resets")

    def __init__(
        self,
        request: ShareFetch | ShareAcknowledge,
        sent_at: float,
        session: ShareSession,
    ) -> None:
        self.request = request
        self.sent_at = sent_at
        self.session_resets = session.resets
        self.partitions = session.partitions

    @property
    def keeps_session(self) -> bool:
        """True if it is a fetch that does not change its session."""
        request = self.request
        return (
            isinstance(request, ShareFetch)
            and request.share_session_epoch != OPENING
            and not request.added
            and not request.forgotten
        )
