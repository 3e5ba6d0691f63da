"""What one leader is asked: the contents of its next ShareFetch or ShareAcknowledge.

Rule: this file does not know when a request goes out; `leader` decides that. What is
made here is sent: its number is taken, and its acknowledgements are under way.
"""

from typing import Final, final

from sharecons._record import RELEASE, RENEW
from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.linger import AckLinger
from sharecons.protocol.fetch.arrivals import MOST_GATHERED, Arrivals
from sharecons.protocol.fetch.empty_responses import EmptyResponses
from sharecons.protocol.fetch.pauses import FetchablePartitions, FetchPauses
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.fetch.quota import Quota
from sharecons.protocol.fetch.session_manager import CLOSING, OPENING, ShareSession
from sharecons.protocol.fetch.turns import Turns
from sharecons.protocol.fetch.waits import Waits
from sharecons.protocol.messages import (
    FetchSettings,
    Range,
    ShareAcknowledge,
    ShareFetch,
    SharePartition,
)

__all__ = ["RequestBuilder", "Sent"]

NEVER: Final = float("inf")

REPORTED_FAILURES: Final = 2
"""So many throttled responses in a row, and nothing else, are reported."""

BACKLOG_SHARE: Final = 4
"""A fetch that brought less than this part of what it asked for has found the end."""


class RequestBuilder:
    """Makes them, of what the parts of one leader's machine know."""

    def __init__(
        self,
        settings: FetchSettings,
        session: ShareSession,
        pace: Prefetch,
        acknowledgements: AckBatcher,
        arrivals: Arrivals,
        gathering: AckLinger,
        waits: Waits,
        empties: EmptyResponses,
        pauses: FetchPauses,
    ) -> None:
        self._settings = settings
        self._session = session
        self._pace = pace
        self._acknowledgements = acknowledgements
        self._arrivals = arrivals
        self._gathering = gathering
        self._waits = waits
        self._empties = empties
        self._fetchable = FetchablePartitions(pauses)
        self._turns = Turns(settings.member_id)
        self._quota = Quota()
        self._lost_until = -NEVER

    def acknowledge(self, now: float, *, closing: bool = False) -> ShareAcknowledge:
        """Say all that can be said in one request; close the session if that is all."""
        self._gathering.end()
        said = self._acknowledgements.take(now)
        epoch = self._session.next_epoch()
        if closing and not self._acknowledgements.pending:
            epoch = CLOSING  # else, what must travel alone takes a request more
            self._lost_until = -NEVER
            self._empties.reopened()
        return ShareAcknowledge(
            group_id=self._settings.group_id,
            member_id=self._settings.member_id,
            share_session_epoch=epoch,
            renewing=any(RENEW in r.kinds for ranges in said.values() for r in ranges),
            acknowledgements=said,
        )

    def fetch(
        self,
        now: float,
        wanted: frozenset[SharePartition],
        leaders: int,
        *,
        backlog: bool = False,
        behind: bool = False,
        opening_only: bool = False,
    ) -> ShareFetch:
        """Ask for these partitions' records, being one of so many leaders.

        Where there is a `backlog` acknowledgements ride along, though they gather, and
        many partitions are asked some at a time, but first all: a broker loads what it
        knows of one when it is first asked. One that is sent `behind` another does not
        wait, and changes nothing of the session. To open that for acknowledgements that
        outlived the one before, nothing is acquired.
        """
        wanted = self.fetchable(wanted, now)
        redeliveries = self._acknowledgements.redeliveries
        asked, longest = wanted, NEVER
        if redeliveries.watches:
            longest = redeliveries.next_end(wanted, now) - now
            asked = wanted = redeliveries.fetchable(wanted, now)
        if behind:
            longest = 0.0
        elif backlog and self._session.is_open:
            asked = self._turns.next(wanted)
        if asked is not wanted:
            longest = 0.0  # what these do not have, others may
        self._acknowledgements.forget_ended(now)
        said = self._riding(now, backlog)
        released = any(RELEASE in r.kinds for ranges in said.values() for r in ranges)
        added, forgotten = self._session.changes(asked, said.keys())
        least = self._settings.min_bytes
        # What is released with this fetch is there only after it, and would not end its
        # wait; and one that does not wait would, for a moment, for more than there is.
        waits = longest > 0.0 and not (opening_only or released)
        together = min(self._arrivals.least, self._settings.max_bytes)
        if waits and together > least:
            least, longest = together, min(longest, MOST_GATHERED)
        # As few records as possible use up a delivery if it is throttled again.
        failed = self._quota.failures > 0
        growth = self._empties.growth
        limit = 1 if failed else self._pace.share(leaders, len(asked), growth)
        size = self._pace.bytes_for(limit, len(asked), self._settings.max_bytes)
        return ShareFetch(
            group_id=self._settings.group_id,
            member_id=self._settings.member_id,
            share_session_epoch=self._session.next_epoch(),
            max_wait=self._wait(now, longest) if waits else 0.0,
            min_bytes=least,
            # With no bytes to give the broker acquires nothing.
            max_bytes=0 if opening_only else self._quota.limit(size, now),
            max_records=limit,
            record_limit=failed
            or self._settings.record_limit
            or not self._pace.takes_whole_batches(leaders),
            added=added,
            forgotten=forgotten,
            acknowledgements=said,
        )

    def look_at_releases(self, now: float) -> None:
        """Pause partitions whose records are released again and again."""
        self._acknowledgements.freeze()
        redeliveries = self._acknowledgements.redeliveries
        if redeliveries.watches and redeliveries.look(now):
            self._pace.restart()

    def next_due(
        self, now: float, wanted: frozenset[SharePartition], *, ahead: bool
    ) -> float:
        """Return when a fetch for some of these partitions is due.

        After pauses for a quota, empty responses, errors of partitions and records that
        were released.
        """
        due = max(self._pace.next_due(now, ahead=ahead), self._empties.due)
        due = max(due, self._quota.due(self._pace.batches.largest, now))
        return max(due, self._pause_end(wanted, now))

    def fetchable(
        self, wanted: frozenset[SharePartition], now: float
    ) -> frozenset[SharePartition]:
        """Return those of the partitions that are not paused for an error."""
        return self._fetchable.at(wanted, now)

    def _pause_end(self, wanted: frozenset[SharePartition], now: float) -> float:
        """Return when some of the partitions may be fetched."""
        fetchable = self._fetchable.at(wanted, now)
        redeliveries = self._acknowledgements.redeliveries
        if fetchable and not redeliveries.watches:
            return -NEVER
        if fetchable and redeliveries.fetchable(fetchable, now):
            return -NEVER
        error_ends = self._fetchable.next_end(wanted, now)
        return min(error_ends, redeliveries.next_end(fetchable, now))

    def has_lost(self, now: float) -> bool:
        """Return whether records are locked that a throttled response did not have.

        Not while every response is throttled: there a lock that holds on keeps the next
        fetch from using up another delivery.
        """
        return now < self._lost_until

    def is_throttled(
        self, request: ShareFetch, got: int, size: int, throttle: float, now: float
    ) -> bool:
        """Count a response's bytes; return whether to report that all are throttled.

        One that is empty because it was throttled used up a delivery of its records.
        """
        if got:
            self._quota.received(size, now)
        elif throttle and request.max_bytes:
            lost = self._pace.expected_bytes(request.max_records)
            self._quota.throttled(throttle, min(lost, request.max_bytes), now)
            if not self._quota.failures:
                self._lost_until = now + self._waits.lock_timeout
            return self._quota.failures == REPORTED_FAILURES
        return False

    def is_due_behind(
        self, sent: "Sent", wanted: frozenset[SharePartition], now: float
    ) -> bool:
        """True if a fetch is due, and finds records, while the answer to this comes."""
        request = sent.request
        if not isinstance(request, ShareFetch) or not self._turns.next_is_all(wanted):
            return False
        if self._quota.is_known(now):
            return False  # the size of this response is not known yet
        coming = self._pace.fitting(request.max_records, request.max_bytes)
        room = self._pace.leaves_room(coming, len(wanted))
        return room and self._pace.next_due(now, coming=coming) <= now

    def left_some(self, got: int, request: ShareFetch) -> bool:
        """True if more lies ready than the fetch brought that was answered now.

        Or may: one that was for some of the partitions tells nothing of the others.
        """
        full = got * BACKLOG_SHARE >= request.max_records
        return self._turns.answered(self._session.partitions, full=full) or full

    def _riding(
        self, now: float, backlog: bool
    ) -> dict[SharePartition, tuple[Range, ...]]:
        """Pick what is acknowledged with the fetch that goes out now."""
        if not self._session.is_open:
            return {}  # nothing may be, in the request that opens a session
        if self._acknowledgements.in_flight:
            return {}  # which would be told apart no more
        rides = self._gathering.can_piggyback(now, self._arrivals.between)
        if not (backlog or rides or self._acknowledgements.releases):
            return {}
        self._gathering.end()
        return self._acknowledgements.take(now)

    def _wait(self, now: float, longest: float) -> float:
        short = self._acknowledgements.has_open or not self._pace.waiting
        return self._waits.next(min(longest, self._gathering.due - now), short=short)


@final
class Sent:
    """A request that is not answered yet.

    Attributes:
        at: when it was sent, which is when our clock of its locks begins.
        resets, partitions: those of its session, when it was.
    """

    __slots__ = ("at", "partitions", "request", "resets")

    def __init__(
        self,
        request: ShareFetch | ShareAcknowledge,
        at: float,
        session: ShareSession,
    ) -> None:
        self.request = request
        self.at = at
        self.resets = session.resets
        self.partitions = session.partitions

    @property
    def is_plain(self) -> bool:
        """True if it is a fetch that changes nothing of its session."""
        request = self.request
        return (
            isinstance(request, ShareFetch)
            and request.share_session_epoch != OPENING
            and not request.added
            and not request.forgotten
        )
