"""What one leader is asked: the contents of its next ShareFetch or ShareAcknowledge.

Rule: this file does not know when a request goes out; `leader` decides that. What is
made here is sent: its number is taken, and its acknowledgements are under way.
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
"""So many throttled responses in a row, and nothing else, are reported."""

BACKLOG_FRACTION: Final = 4
"""A fetch that brought less than this part of what it asked for has found the end."""


class RequestBuilder:
    """Makes them, of what the parts of one leader's machine know."""

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
        """Say all that can be said in one request; close the session if that is all."""
        self._linger.end()
        said = self._batcher.take_ranges(now)
        epoch = self._session.next_epoch()
        if closing and not self._batcher.has_pending:
            epoch = CLOSING  # else, what must travel alone takes a request more
            self._records_lost_until = -math.inf
            self._empty_responses.on_reopened()
        return ShareAcknowledge(
            group_id=self._settings.group_id,
            member_id=self._settings.member_id,
            share_session_epoch=epoch,
            is_renew_ack=any(
                RENEW in r.kinds for ranges in said.values() for r in ranges
            ),
            acknowledgements=said,
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
        """Ask for these partitions' records, being one of so many leaders.

        Where there is a `backlog` acknowledgements ride along, though they gather, and
        many partitions are asked some at a time, but first all: a broker loads what it
        knows of one when it is first asked. One that is sent `behind` another does not
        wait, and changes nothing of the session. To open that for acknowledgements that
        outlived the one before, nothing is acquired.
        """
        partitions = self.fetchable(partitions, now)
        redeliveries = self._batcher.redeliveries
        asked, longest = partitions, math.inf
        if redeliveries.has_releases:
            longest = redeliveries.next_pause_end(partitions, now) - now
            asked = partitions = redeliveries.fetchable(partitions, now)
        if pipelined:
            longest = 0.0
        elif backlog and self._session.is_open:
            asked = self._rotation.next(partitions)
        if asked is not partitions:
            longest = 0.0  # what these do not have, others may
        self._batcher.forget_expired(now)
        said = self._take_acknowledgements(now, backlog)
        released = any(RELEASE in r.kinds for ranges in said.values() for r in ranges)
        added, forgotten = self._session.update(asked, said.keys())
        least = self._settings.min_bytes
        # What is released with this fetch is there only after it, and would not end its
        # wait; and one that does not wait would, for a moment, for more than there is.
        waits = longest > 0.0 and not (opening_only or released)
        together = min(self._arrival_rate.min_bytes, self._settings.max_bytes)
        if waits and together > least:
            least, longest = together, min(longest, MAX_GATHER_TIME)
        # As few records as possible use up a delivery if it is throttled again.
        failed = self._quota.failures > 0
        growth = self._empty_responses.growth
        limit = (
            1 if failed else self._prefetch.record_limit(leaders, len(asked), growth)
        )
        size = self._prefetch.byte_limit(limit, len(asked), self._settings.max_bytes)
        return ShareFetch(
            group_id=self._settings.group_id,
            member_id=self._settings.member_id,
            share_session_epoch=self._session.next_epoch(),
            max_wait=self._wait_time(now, longest) if waits else 0.0,
            min_bytes=least,
            # With no bytes to give the broker acquires nothing.
            max_bytes=0 if opening_only else self._quota.limit_bytes(size, now),
            max_records=limit,
            record_limit=failed
            or self._settings.record_limit
            or not self._prefetch.takes_whole_batches(leaders),
            added=added,
            forgotten=forgotten,
            acknowledgements=said,
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

        After pauses for a quota, empty responses, errors of partitions and records that
        were released.
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
        """Return when some of the partitions may be fetched."""
        fetchable = self._fetchable.select(partitions, now)
        redeliveries = self._batcher.redeliveries
        if fetchable and not redeliveries.has_releases:
            return -math.inf
        if fetchable and redeliveries.fetchable(fetchable, now):
            return -math.inf
        error_ends = self._fetchable.next_pause_end(partitions, now)
        return min(error_ends, redeliveries.next_pause_end(fetchable, now))

    def has_lost_records(self, now: float) -> bool:
        """Return whether records are locked that a throttled response did not have.

        Not while every response is throttled: there a lock that holds on keeps the next
        fetch from using up another delivery.
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
        """Count a response's bytes; return whether to report that all are throttled.

        One that is empty because it was throttled used up a delivery of its records.
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
        """True if a fetch is due, and finds records, while the answer to this comes."""
        request = sent.request
        if not isinstance(request, ShareFetch) or not self._rotation.is_undivided(
            partitions
        ):
            return False
        if self._quota.is_known(now):
            return False  # the size of this response is not known yet
        coming = self._prefetch.expected_records(request.max_records, request.max_bytes)
        room = self._prefetch.has_room_for_next(coming, len(partitions))
        return room and self._prefetch.next_due(now, coming=coming) <= now

    def found_backlog(self, record_count: int, request: ShareFetch) -> bool:
        """True if more lies ready than the fetch brought that was answered now.

        Or may: one that was for some of the partitions tells nothing of the others.
        """
        full = record_count * BACKLOG_FRACTION >= request.max_records
        return self._rotation.on_response(self._session.partitions, full=full) or full

    def _take_acknowledgements(
        self, now: float, backlog: bool
    ) -> dict[SharePartition, tuple[Range, ...]]:
        """Pick what is acknowledged with the fetch that goes out now."""
        if not self._session.is_open:
            return {}  # nothing may be, in the request that opens a session
        if self._batcher.has_in_flight:
            return {}  # which would be told apart no more
        rides = self._linger.can_piggyback(now, self._arrival_rate.fetch_interval)
        if not (backlog or rides or self._batcher.has_releases):
            return {}
        self._linger.end()
        return self._batcher.take_ranges(now)

    def _wait_time(self, now: float, longest: float) -> float:
        short = self._batcher.has_open or not self._prefetch.waiting_readers
        return self._max_wait.next(min(longest, self._linger.due - now), short=short)


@final
class SentRequest:
    """A request that is not answered yet.

    Attributes:
        at: when it was sent, which is when our clock of its locks begins.
        resets, partitions: those of its session, when it was.
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
        """True if it is a fetch that changes nothing of its session."""
        request = self.request
        return (
            isinstance(request, ShareFetch)
            and request.share_session_epoch != OPENING
            and not request.added
            and not request.forgotten
        )
