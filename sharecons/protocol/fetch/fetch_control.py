"""The decisions about the fetches of one leader: when, from where, how much, how long.

`FetchControl` combines them in a `FetchPlan`. The amounts come from `prefetch`,
`byte_limit` and `transfer_limit`; the times from `fetch_pauses`, `empty_responses`,
`quota` and the batcher's `redeliveries`; the partitions from `fetchable_partitions` and
`partition_rotation`; the wait at the broker from `max_wait` and `arrival_rate`.
"""

import math
from typing import Final, NamedTuple, final

from sharecons.errors import Error, RequestTimedOutError
from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.backoff import spread_of
from sharecons.protocol.fetch.arrival_rate import MAX_GATHER_TIME, ArrivalRate
from sharecons.protocol.fetch.byte_limit import byte_limit
from sharecons.protocol.fetch.empty_responses import EmptyResponses
from sharecons.protocol.fetch.fetch_pauses import FetchPauses
from sharecons.protocol.fetch.fetch_plan import FetchPlan
from sharecons.protocol.fetch.fetchable_partitions import FetchablePartitions
from sharecons.protocol.fetch.max_wait import MaxWait
from sharecons.protocol.fetch.partition_rotation import PartitionRotation
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.fetch.quota import Quota
from sharecons.protocol.fetch.session_manager import OPENING, ShareSession
from sharecons.protocol.fetch.settings import FetchSettings
from sharecons.protocol.fetch.transfer_limit import TransferLimit
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import (
    ShareAcknowledge,
    ShareFetch,
    ShareFetchResponse,
)

__all__ = ["FetchControl", "FetchOutcome"]

THROTTLED_TO_REPORT: Final = 2
"""The number of consecutive throttled responses after which they are reported."""

BACKLOG_FRACTION: Final = 4
"""A fetch that returned at least 1/4 of the requested records shows a backlog."""


LOSS_DELAY: Final = 0.6
"""Seconds from a lost connection to the release of the records of its last fetch, which
can wait at the broker for half a second if records arrive."""


class FetchOutcome(NamedTuple):
    """The news in a response.

    Attributes:
        has_backlog: more records are probably available than it returned.
        is_throttled: all responses are throttled; true once.
        is_stalled: the node keeps returning empty responses early.
    """

    has_backlog: bool
    is_throttled: bool
    is_stalled: bool


@final
class FetchControl:
    """Decides about the fetches of one leader.

    Attributes:
        fetch_interval: average seconds between responses with records.
        lock_timeout: seconds for which acquired records are locked.
        release_from: when records are released that are locked for no lease.
    """

    def __init__(
        self,
        settings: FetchSettings,
        session: ShareSession,
        prefetch: Prefetch,
        batcher: AckBatcher,
        pauses: FetchPauses,
    ) -> None:
        self._settings = settings
        self._session = session
        self._prefetch = prefetch
        self._batcher = batcher
        self._fetchable = FetchablePartitions(pauses)
        self._rotation = PartitionRotation(settings.member_id)
        self._arrival_rate = ArrivalRate()
        self._max_wait = MaxWait(settings.max_wait)
        self._quota = Quota()
        self._transfer_limit = TransferLimit()
        spread = spread_of(settings.member_id)
        self._empty_responses = EmptyResponses(spread, settings.max_wait)
        self.release_from = math.inf

    @property
    def fetch_interval(self) -> float:
        return self._arrival_rate.fetch_interval

    @property
    def lock_timeout(self) -> float:
        return self._max_wait.lock_timeout

    # Time.

    def next_due(
        self, now: float, partitions: frozenset[SharePartition], *, ahead: bool
    ) -> float:
        """Return when a fetch for some of these partitions is due.

        It is due after pauses for a quota, empty responses, errors of partitions and
        released records.

        Args:
            ahead: also fetch while records are buffered.
        """
        due = max(self._prefetch.next_due(now, ahead=ahead), self._empty_responses.due)
        due = max(due, self._quota.next_due(self._prefetch.batches.largest, now))
        return max(due, self._pause_end(partitions, now))

    def must_reopen(self, now: float) -> bool:
        """Return whether to close the session and open another one.

        This releases records of a lost response, records missing in a throttled one and
        those with a denied acknowledgement, which stay locked otherwise. A broker that
        keeps returning empty responses early might return records in another session.

        False while every response is throttled: the lock then keeps the next fetch from
        using up another delivery.
        """
        is_lost = self.release_from <= now < self.release_from + self.lock_timeout
        return is_lost or self._empty_responses.must_reopen

    def next_reopen(self, now: float) -> float:
        """Return when `must_reopen` changes by itself; infinity if it does not."""
        return self.release_from if now < self.release_from else math.inf

    def _pause_end(self, partitions: frozenset[SharePartition], now: float) -> float:
        """Return when one of the partitions can be fetched."""
        fetchable = self._fetchable.select(partitions, now)
        redeliveries = self._batcher.redeliveries
        if fetchable and not redeliveries.has_releases:
            return -math.inf
        if fetchable and redeliveries.fetchable(fetchable, now):
            return -math.inf
        error_ends = self._fetchable.next_pause_end(partitions, now)
        return min(error_ends, redeliveries.next_pause_end(fetchable, now))

    # Contents.

    def plan(
        self,
        now: float,
        partitions: frozenset[SharePartition],
        leaders: int,
        *,
        backlog: bool,
        may_wait: bool,
        until_ack: float,
    ) -> FetchPlan:
        """Return what the fetch that is sent now requests.

        Args:
            now: the current time.
            partitions: the partitions to fetch, if they are not paused.
            leaders: how many leaders share the prefetch allowance.
            backlog: more records are available. The fetch then requests one part of
                many partitions in turn; but the first fetch requests all, so that the
                broker loads their state.
            may_wait: the fetch can wait at the broker.
            until_ack: seconds until an acknowledgement must be sent.
        """
        requested = fetchable = self._fetchable.select(partitions, now)
        max_wait = min(until_ack, self.next_reopen(now) - now)
        redeliveries = self._batcher.redeliveries
        if redeliveries.has_releases:
            # A partition is fetched when its pause ends, not when this fetch returns.
            pause = redeliveries.next_pause_end(fetchable, now) - now
            max_wait = min(max_wait, pause)
            requested = fetchable = redeliveries.fetchable(fetchable, now)
        if backlog and self._session.is_open:
            requested = self._rotation.next(fetchable)
            may_wait &= requested is fetchable  # other partitions might have records
        min_bytes = self._settings.min_bytes
        gathered = min(self._arrival_rate.min_bytes, self._settings.max_bytes)
        # A fetch with a `max_wait` of 0 would wait briefly for `min_bytes`.
        if may_wait and gathered > min_bytes:
            min_bytes, max_wait = gathered, min(max_wait, MAX_GATHER_TIME)
        until_request = self._until_request(now)
        # If throttled again, as few records as possible use up a delivery.
        failed = self._quota.failures > 0
        growth = self._empty_responses.growth
        records = self._prefetch.record_limit(leaders, len(requested), growth)
        limit = 1 if failed else records
        size = byte_limit(
            self._prefetch,
            records=limit,
            partitions=len(requested),
            min_bytes=min_bytes,
            max_bytes=self._settings.max_bytes,
            backlog=backlog,
        )
        whole_batches = self._prefetch.takes_whole_batches(leaders)
        return FetchPlan(
            partitions=requested,
            max_wait=self._max_wait.next(max_wait, until_request) if may_wait else 0.0,
            min_bytes=min_bytes,
            max_bytes=self._transfer_limit.limit_bytes(
                self._quota.limit_bytes(size, now)
            ),
            max_records=limit,
            record_limit=failed or self._settings.record_limit or not whole_batches,
        )

    def _until_request(self, now: float) -> float:
        """Return the seconds until another request might have to be sent."""
        if not self._prefetch.waiting_readers:
            return 0.0  # the application can acknowledge at any time
        if self._batcher.has_open:
            return self._prefetch.next_ack() - now
        return self._batcher.next_delay_check - now

    # Responses.

    def on_success(self, lock_timeout: float) -> None:
        """Handle a response without an error; `lock_timeout` is 0.0 if it has none."""
        self._max_wait.lock_timeout = lock_timeout or self._max_wait.lock_timeout

    def on_fetched(
        self,
        request: ShareFetch,
        response: ShareFetchResponse,
        records: int,
        size: int,
        sent_at: float,
        now: float,
    ) -> FetchOutcome:
        """Handle a fetch response; return what it shows.

        Args:
            request, response: the exchange.
            records, size: how many records it acquired, and their bytes.
            sent_at, now: the times of the request and the response.
        """
        stalled = False
        if records:
            self._prefetch.measure(response.partitions, self.lock_timeout)
            self._transfer_limit.on_received(
                size, now - sent_at, request.max_wait, self.lock_timeout
            )
            if self._empty_responses.in_a_row:
                self._empty_responses.reset()
        elif _is_unexplained(request, response):
            self._empty_responses.on_empty_response(request, sent_at, now)
            stalled = self._empty_responses.is_stalled
        keeps_up = self._prefetch.keeps_up
        self._arrival_rate.on_response(records, size, now, keeps_up=keeps_up)
        self._max_wait.on_response(useful=records > 0 or bool(request.acknowledgements))
        full = records * BACKLOG_FRACTION >= request.max_records
        in_turn = self._rotation.on_response(self._session.partitions, full=full)
        return FetchOutcome(
            has_backlog=in_turn or full,  # after a part, others might have records
            is_throttled=self._count_bytes(request, response, records, size, now),
            is_stalled=stalled,
        )

    def on_error(
        self, request: ShareFetch | ShareAcknowledge, error: Error, now: float
    ) -> None:
        """Handle a lost response; request less next if it did not arrive in time.

        A broker releases the records of a connection that ends, even if a fetch that
        waits there acquires them later. But it can learn of the end late, and records
        that it acquires at that moment can stay locked: of 12 cuts under load, 2
        delayed records by a lock duration (4.4.0).
        """
        if isinstance(request, ShareAcknowledge) or not _can_acquire(request):
            return
        self.release_from = now + LOSS_DELAY
        if isinstance(error, RequestTimedOutError):
            self._transfer_limit.on_timed_out(request.max_bytes)

    def on_acknowledged(self) -> None:
        """End the pause after empty responses: acknowledgements were applied."""
        if self._empty_responses.in_a_row:
            self._empty_responses.end_pause()

    def on_partitions_changed(self) -> None:
        """Forget empty responses: they were for other partitions."""
        self._empty_responses.reset()

    def on_session_closed(self) -> None:
        """Forget the lost records and empty responses of the closed session."""
        self.release_from = math.inf
        self._empty_responses.on_reopened()

    def _count_bytes(
        self,
        request: ShareFetch,
        response: ShareFetchResponse,
        records: int,
        size: int,
        now: float,
    ) -> bool:
        """Count a response for the quota; return whether to report throttling.

        A response that is empty due to throttling has used up a delivery.
        """
        if records:
            self._quota.on_received(size, now)
        elif response.throttle and _can_acquire(request):
            lost = self._prefetch.expected_bytes(request.max_records)
            lost = min(lost, request.max_bytes)
            self._quota.on_throttled(response.throttle, lost, now)
            if not self._quota.failures:
                self.release_from = now
            return self._quota.failures == THROTTLED_TO_REPORT
        return False


def _can_acquire(request: ShareFetch) -> bool:
    return min(request.max_bytes, request.max_records) > 0


def _is_unexplained(request: ShareFetch, response: ShareFetchResponse) -> bool:
    """Return whether nothing in the exchange explains an empty response."""
    # Brokers should have held a fetch that changes nothing in its session.
    return _can_acquire(request) and not (
        request.share_session_epoch == OPENING
        or request.added
        or request.forgotten
        or request.acknowledgements
        or response.throttle
        or any(partition.error for partition in response.partitions)
    )
