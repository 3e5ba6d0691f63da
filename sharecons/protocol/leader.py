"""One leader of share partitions: what to ask it next, and what its answers mean.

Whether a ShareFetch or a ShareAcknowledge goes out, and when, is decided here;
numbers come from `session`, contents from `acknowledgements`, amounts from `pace`.

Theory of operation
-------------------
One request at a time. A fetch that waits at the broker holds up everything else
on its session, and an acknowledgement sent beside it would end it with an error
and cost a delivery (measured on 4.3.0). So a fetch waits long (`max_wait`) only
when nothing of this leader's is in the application's hands, and for moments
otherwise, growing while nothing comes.

Where more records lie ready than a fetch brings, the next one is sent while these
are worked. Where none do, it waits until the application asks: it then carries the
acknowledgements of these, and may wait long.

Acknowledgements ride on a fetch that is due, or go by themselves; `gathering` says
when. Renewals never ride on a fetch: a renewing fetch may not fetch.

What the answers bring for others, `happened` collects: leases for the consumer,
hints of new leaders, errors to raise. A lost connection ends the session's term;
what was under way then has an unknown outcome and is not sent again.
"""

from dataclasses import replace
from typing import Final

from sharecons.errors import AuthenticationError, Error, UnsupportedVersionError
from sharecons.protocol import reactions
from sharecons.protocol.acknowledgements import AcknowledgeError, Acknowledgements
from sharecons.protocol.backoff import Backoff, spread_of
from sharecons.protocol.codes import code_name
from sharecons.protocol.gathering import Gathering
from sharecons.protocol.happenings import (
    Acquired,
    EndpointsTold,
    Happened,
    LocksLost,
    MetadataStale,
    Refused,
    Strange,
    acknowledge_failed,
    fetch_failed,
    refusal,
)
from sharecons.protocol.leases import Lease
from sharecons.protocol.pace import Pace
from sharecons.protocol.reactions import Reaction, reaction
from sharecons.protocol.session import CLOSING, ShareSession
from sharecons.protocol.values import (
    FetchedPartition,
    FetchSettings,
    Range,
    ShareAcknowledge,
    ShareAcknowledged,
    ShareFetch,
    ShareFetched,
    SharePartition,
    TopicId,
)
from sharecons.untyped import RELEASE, RENEW

__all__ = ["Leader"]

NEVER: Final = float("inf")

SHORT_WAIT: Final = 0.01
LONGEST_SHORT_WAIT: Final = 0.1
BACKLOG_SHARE: Final = 4
"""A fetch that brought less than this part of what it asked for has found the end."""
WAIT_SHARE: Final = 0.25
"""The longest wait, as a share of a lock's length: our clock of the lock begins with
the request."""

Request = ShareFetch | ShareAcknowledge
Answer = ShareFetched | ShareAcknowledged


class Leader:
    """The machine of one leader; its contract is the package's.

    Attributes:
        wanted: the partitions to fetch from this leader.
        topics: the names of topics by id; set by the shell.
        acknowledgements: what is said of the records that came from it.
        happened: what its answers brought; taken by the shell.
        leaders: how many leaders share the allowance; set by the shell.
        backlog: more lies ready than the last fetch brought.
    """

    def __init__(
        self,
        node_id: int,
        settings: FetchSettings,
        pace: Pace,
        acknowledgements: Acknowledgements,
    ) -> None:
        self.node_id = node_id
        self.wanted: frozenset[SharePartition] = frozenset()
        self.topics: dict[TopicId, str] = {}
        self.acknowledgements = acknowledgements
        self.happened: list[Happened] = []
        self.leaders = 1
        self.finished = False
        self._settings = settings
        self._pace = pace
        self._session = ShareSession()
        self._backoff = Backoff(spread_of(settings.member_id))
        self._not_before = 0.0
        self._gathering = Gathering()
        self._closing = False
        self._short_wait = SHORT_WAIT
        self._acquired_at = 0.0
        self._lock_timeout = 30.0  # share.record.lock.duration.ms, until told
        self._under_way = False
        self.backlog = True

    # What the shell tells.

    def want(self, partitions: frozenset[SharePartition]) -> None:
        """Fetch these from now on; the others are forgotten with the next fetch."""
        self.wanted = partitions

    def hasten(self) -> None:
        """Somebody waits for acknowledgements: do not let them gather."""
        self._gathering.urgent = True

    def close(self) -> None:
        """Fetch no more; say what is to be said, and close the session."""
        self._closing = True
        self._not_before = 0.0
        if not self._session.is_open and not self._under_way:
            self._finish("the consumer was closed")

    def moved_away(self, now: float) -> bool:
        """True once nothing is fetched here and nothing more can be said here."""
        self.acknowledgements.forget_ended(now)
        busy = self.acknowledgements.held or self.acknowledgements.pending
        return not (self.wanted or busy or self._under_way)

    # The machine's contract.

    def next_deadline(self, now: float) -> float:
        if self.finished:
            return NEVER
        due = self._gathering.due
        acknowledgements = self.acknowledgements
        at_once = self._gathering.urgent or due == NEVER or acknowledgements.unseen
        if self._closing or (at_once and acknowledgements.pending):
            due = now
        if self.wanted:
            due = min(due, self._pace.next_due(now, ahead=self.backlog))
        return max(due, self._not_before)

    def next_request(self, now: float) -> Request | None:
        if self.finished or now < self._not_before:
            return None
        request = self._choose(now)
        self._under_way = request is not None
        return request

    def answered(self, request: Request, answer: Answer, now: float) -> None:
        self._under_way = False
        if answer.endpoints:
            self.happened.append(EndpointsTold(dict(answer.endpoints)))
        self._not_before = now + answer.throttle
        match reaction(reactions.FETCH, answer.error):
            case Reaction.PROCEED:
                self._proceed(request, answer, now)
            case Reaction.REOPEN:
                # Not applied; the locks are the member's and outlive the session.
                self._session.reset()
                self.acknowledgements.resend()
                self._pause(now, answer.throttle)
            case Reaction.LOSE_SESSION:
                self._lose(
                    f"the broker no longer knows the session of node {self.node_id}"
                )
                self._pause(now, answer.throttle)
            case Reaction.REFUSE:
                self._fail_acknowledgements(answer, now)
                self.happened.append(
                    refusal(self._settings.group_id, self.node_id, answer)
                )
                self._finish("the broker refuses to serve this member")
            case _:
                # Whether the broker counted this request is unknown: open anew.
                self._session.reset()
                self._fail_acknowledgements(answer, now)
                self._pause(now, answer.throttle)
        if request.share_session_epoch == CLOSING:
            self._finish("the session was closed")

    def failed(self, request: Request, error: Error, now: float) -> None:
        self._under_way = False
        self._lose(f"the connection to node {self.node_id} was lost: {error}")
        if isinstance(error, (AuthenticationError, UnsupportedVersionError)):
            self.happened.append(Refused(error))
            self.finished = True
        elif self._closing:
            self.finished = True
        else:
            self.happened.append(MetadataStale(f"node {self.node_id}: {error}"))
            self._pause(now, 0.0)

    # Which request.

    def _choose(self, now: float) -> Request | None:
        if self._closing:
            return self._close(now)
        due = self._pace.next_due(now, ahead=self.backlog)
        fetching = bool(self.wanted) and due <= now
        if self._acknowledges(now, fetching):
            return self._acknowledge(now)
        if fetching:
            return self._fetch(now)
        if self.acknowledgements.pending and not self._session.is_open:
            return self._fetch(now, opening_only=True)
        return None

    def _close(self, now: float) -> ShareAcknowledge | None:
        if not self._session.is_open:
            self._finish("the consumer was closed")
            return None
        # A renewal has no sense any more: its record is given back.
        self.acknowledgements.stop_renewing()
        request = self._acknowledge(now)
        if self.acknowledgements.pending:
            return request  # what must travel alone takes a request more
        return replace(request, share_session_epoch=CLOSING)

    def _acknowledges(self, now: float, fetching: bool) -> bool:
        """True if acknowledgements are due by themselves."""
        acknowledgements = self.acknowledgements
        acknowledgements.freeze()
        if not acknowledgements.pending:
            self._gathering.end()
            return False
        if not self._session.is_open:
            self._gathering.due = now
            return False
        self._gathering.begin(now)
        if acknowledgements.renews:
            return True
        return not fetching and self._gathering.leaves(now)

    def _acknowledge(self, now: float) -> ShareAcknowledge:
        self._gathering.end()
        said = self.acknowledgements.take(now)
        return ShareAcknowledge(
            group_id=self._settings.group_id,
            member_id=self._settings.member_id,
            share_session_epoch=self._session.epoch,
            renewing=any(RENEW in r.kinds for ranges in said.values() for r in ranges),
            acknowledgements=said,
        )

    def _fetch(self, now: float, *, opening_only: bool = False) -> ShareFetch:
        self.acknowledgements.forget_ended(now)
        said = self._riding(now)
        released = any(RELEASE in r.kinds for ranges in said.values() for r in ranges)
        added, forgotten = self._session.changes(self.wanted, said.keys())
        limit = self._pace.share(self.leaders, len(self.wanted))
        size = self._pace.bytes_for(limit, len(self.wanted), self._settings.max_bytes)
        self._acquired_at = now
        return ShareFetch(
            group_id=self._settings.group_id,
            member_id=self._settings.member_id,
            share_session_epoch=self._session.epoch,
            # What is released with this fetch is there only after it, and would not
            # end its wait.
            max_wait=0.0 if opening_only or released else self._wait(now),
            min_bytes=self._settings.min_bytes,
            # With no bytes to give the broker acquires nothing: only the session is
            # opened, for acknowledgements that outlived the one before.
            max_bytes=0 if opening_only else size,
            max_records=limit,
            # Whole batches only at full speed: below it they would be more than the
            # application can work off.
            record_limit=self._settings.record_limit or not self._pace.full_speed,
            added=added,
            forgotten=forgotten,
            acknowledgements=said,
        )

    def _riding(self, now: float) -> dict[SharePartition, tuple[Range, ...]]:
        """Pick what is acknowledged with the fetch that goes out now."""
        if not self._session.is_open:
            return {}  # nothing may be, in the request that opens a session
        at_once = self.backlog or self.acknowledgements.releases
        if at_once or self._gathering.rides(now):
            self._gathering.end()
            return self.acknowledgements.take(now)
        return {}

    def _wait(self, now: float) -> float:
        # What comes at the end of a wait must still have most of its lock before it.
        longest = min(self._settings.max_wait, self._lock_timeout * WAIT_SHARE)
        longest = min(longest, self._gathering.due - now)
        if self.acknowledgements.has_open or not self._pace.waiting:
            return min(self._short_wait, longest)
        return longest

    # What the answers mean.

    def _proceed(self, request: Request, answer: Answer, now: float) -> None:
        self._lock_timeout = answer.lock_timeout or self._lock_timeout
        renewed_until = self._renewed_until(request, now)
        if isinstance(request, ShareFetch) and isinstance(answer, ShareFetched):
            self._session.fetched()
            self.acknowledgements.renewable = answer.renewable
            self._take_records(request, answer)
        else:
            self._session.acknowledged()
        self.acknowledgements.answered(
            answer.partitions, error=None, renewed_until=renewed_until, now=now
        )
        for partition in answer.partitions:
            if partition.acknowledge_error:
                self.happened += acknowledge_failed(partition)
        self._mind_trouble(answer, now)

    def _mind_trouble(self, answer: Answer, now: float) -> None:
        """Nothing that failed is asked for again at the speed of a round trip."""
        failed = any(p.error for p in answer.partitions)
        idle = failed and not any(p.acquired for p in answer.partitions)
        if idle or self.acknowledgements.to_retry:
            self._pause(now, answer.throttle)
        else:
            self._backoff.reset()

    def _renewed_until(self, request: Request, now: float) -> float:
        # The request's own time would be safer by a round trip; but a renewal is
        # answered at once, and the broker may be slow to write it.
        renewing = isinstance(request, ShareAcknowledge) and request.renewing
        return now + self._lock_timeout if renewing else 0.0

    def _take_records(self, request: ShareFetch, answer: ShareFetched) -> None:
        seen: set[SharePartition] = set()
        got = size = 0
        for partition in answer.partitions:
            share_partition = partition.share_partition
            listed = share_partition in self._session.partitions
            told = share_partition in request.acknowledgements
            if share_partition in seen or not (listed or told):
                what = f"node {self.node_id} answered for {share_partition}, unasked"
                self.happened.append(Strange(what))
                continue
            seen.add(share_partition)
            if partition.error:
                self.happened += fetch_failed(partition)
            if partition.acquired:
                got += self._acquired(partition)
                size += len(partition.records)
        if got:
            self._pace.weighed(got, size)
        longer = min(self._short_wait * 2, LONGEST_SHORT_WAIT)
        self._short_wait = SHORT_WAIT if got or request.acknowledgements else longer
        self.backlog = got * BACKLOG_SHARE >= request.max_records

    def _acquired(self, partition: FetchedPartition) -> int:
        lease = Lease(
            topic=self.topics.get(partition.share_partition.topic_id, "?"),
            share_partition=partition.share_partition,
            acquired=partition.acquired,
            payload=partition.records,
            deadline=self._acquired_at + self._lock_timeout,
            term=self._session.term,
            owner=self.acknowledgements,
        )
        self.acknowledgements.acquired(lease)
        self._pace.acquired(lease.count)
        self.happened.append(Acquired(lease))
        return lease.count

    def _fail_acknowledgements(self, answer: Answer, now: float) -> None:
        code, message = answer.error, answer.message or ""
        error = AcknowledgeError(code, code_name(code), message)
        self.acknowledgements.answered((), error=error, renewed_until=0.0, now=now)

    # Trouble.

    def _pause(self, now: float, throttle: float) -> None:
        # Closing waits for nothing but what is to be said once more.
        if not self._closing or self.acknowledgements.to_retry:
            self._not_before = now + max(self._backoff.next_delay(), throttle)

    def _lose(self, why: str) -> None:
        term = self._session.term
        held = self.acknowledgements.held
        self._session.lost(why)
        self.acknowledgements.lost(term)
        self._gathering.end()
        if held and not self._closing:
            self.happened.append(LocksLost(why, held))

    def _finish(self, why: str) -> None:
        self._lose(why)
        self.finished = True
