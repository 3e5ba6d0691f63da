"""One leader of share partitions: what to ask it next, and what its answers mean.

Whether a ShareFetch or a ShareAcknowledge goes out, and when, is decided here;
numbers come from `session`, contents from `acknowledgements`, amounts from `pace`.

Theory of operation
-------------------
One request at a time, but where much comes. A fetch that waits at the broker holds up
everything else on its session, and an acknowledgement sent beside it, on another
connection, would end it with an error and cost a delivery (measured on 4.3.0): `waits`
says how long one may.

Where more records lie ready than a fetch brings, the next one is sent while these
are worked. Where none do, it waits until the application asks: it then carries the
acknowledgements of these, and may wait long; where they come in crowds, until some are
together: see `arrivals`. Where a fetch brings much, another one is sent behind it while
that comes, which the broker turns to as soon as it has sent its answer. It does not
wait, and changes nothing of the session.

Acknowledgements ride on a fetch that is due, or go by themselves; `gathering` says
when. Renewals never ride on a fetch: a renewing fetch may not fetch.

What the answers bring for others, `happened` collects: leases for the consumer,
hints of new leaders, errors to raise. A lost connection ends the session's term;
what was under way then has an unknown outcome and is not sent again.
"""

from typing import Final

from sharecons.errors import AuthenticationError, Error, UnsupportedVersionError
from sharecons.protocol import error_actions
from sharecons.protocol.acknowledge.batcher import AckBatcher, AcknowledgeError
from sharecons.protocol.acknowledge.linger import AckLinger
from sharecons.protocol.backoff import Backoff, spread_of
from sharecons.protocol.codes import code_name
from sharecons.protocol.error_actions import ErrorAction, action_for
from sharecons.protocol.fetch.arrivals import Arrivals
from sharecons.protocol.fetch.empty_responses import EmptyResponses
from sharecons.protocol.fetch.events import (
    EndpointsLearned,
    FatalError,
    LeaderEvent,
    LocksLost,
    MetadataStale,
    ack_error_event,
    fatal_error,
)
from sharecons.protocol.fetch.pauses import FetchPauses
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.fetch.request_builder import RequestBuilder, Sent
from sharecons.protocol.fetch.response_handler import ResponseHandler
from sharecons.protocol.fetch.session_manager import CLOSING, ShareSession
from sharecons.protocol.fetch.waits import Waits
from sharecons.protocol.messages import (
    FetchSettings,
    ShareAcknowledge,
    ShareAcknowledged,
    ShareFetch,
    ShareFetched,
    SharePartition,
    TopicId,
)

__all__ = ["Leader"]

NEVER: Final = float("inf")

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
        pace: Prefetch,
        acknowledgements: AckBatcher,
        pauses: FetchPauses | None = None,
    ) -> None:
        self.node_id = node_id
        self.wanted: frozenset[SharePartition] = frozenset()
        self.topics: dict[TopicId, str] = {}
        self.batcher = acknowledgements
        self.events: list[LeaderEvent] = []
        self.leaders = 1
        self.finished = False
        self._settings = settings
        self._prefetch = pace
        self._session = ShareSession()
        spread = spread_of(settings.member_id)
        self._pauses = pauses or FetchPauses(spread)
        self._backoff = Backoff(spread)
        self._empties = EmptyResponses(spread, settings.max_wait)
        self._not_before = 0.0
        self._arrivals = Arrivals()
        self._linger = AckLinger()
        self._closing = False
        self._waits = Waits(settings.max_wait)
        self._requests = RequestBuilder(
            settings,
            self._session,
            pace,
            acknowledgements,
            self._arrivals,
            self._linger,
            self._waits,
            self._empties,
            self._pauses,
        )
        self._response_handler = ResponseHandler(
            node_id,
            self._session,
            pace,
            acknowledgements,
            self._arrivals,
            self._requests,
            self._waits,
            self._empties,
            self._pauses,
        )
        self._sent: list[Sent] = []
        self.backlog = True

    # What the shell tells.

    def set_partitions(self, partitions: frozenset[SharePartition]) -> None:
        """Fetch these from now on; the others are forgotten with the next fetch."""
        if partitions != self.wanted:
            self._empties.reset()
            self.batcher.redeliveries.keep_only(partitions)
        self.wanted = partitions

    def flush_acks(self) -> None:
        """Somebody waits for acknowledgements: do not let them gather."""
        self._linger.urgent = True

    def close(self) -> None:
        """Fetch no more; say what is to be said, and close the session."""
        self._closing = True
        self._not_before = 0.0
        if not self._session.is_open and not self._sent:
            self._finish("the consumer was closed")

    def is_idle(self, now: float) -> bool:
        """True once nothing is fetched here and nothing more can be said here."""
        self.batcher.forget_ended(now)
        busy = self.batcher.held or self.batcher.pending
        return not (self.wanted or busy or self._sent)

    # The machine's contract.

    def next_deadline(self, now: float) -> float:
        if self.finished:
            return NEVER
        due = self._linger.due
        acknowledgements = self.batcher
        at_once = self._linger.urgent or due == NEVER or acknowledgements.unseen
        if self._closing or (at_once and acknowledgements.pending):
            due = now
        if self.wanted:
            due = min(due, self._fetch_due(now))
        if self._may_reopen(now):
            due = now
        return max(due, self._not_before)

    def next_request(self, now: float) -> Request | None:
        if self.finished or self._sent or now < self._not_before:
            return None
        return self._sending(self._choose(now), now)

    def next_behind(self, now: float) -> Request | None:
        """Give a fetch to be sent behind the one under way, if one is due.

        To be asked when a part of that one's answer is here, and more to come. It is
        answered after the other.
        """
        if not self._may_follow(now) or self._acknowledges(now, fetching=True):
            return None
        if self.batcher.redeliveries.watches:
            return None
        request = self._requests.fetch(
            now, self.wanted, self.leaders, backlog=True, behind=True
        )
        return self._sending(request, now)

    def answered(self, request: Request, answer: Answer, now: float) -> None:
        sent = self._sent.pop(0)
        if answer.endpoints:
            self.events.append(EndpointsLearned(dict(answer.endpoints)))
        # Of two requests under way, the second does not end the first one's pause.
        self._not_before = max(self._not_before, now + answer.throttle)
        match action_for(error_actions.FETCH, answer.error):
            case ErrorAction.PROCEED:
                self._proceed(sent, answer, now)
            case ErrorAction.REOPEN:
                self._reopen_session(sent, answer, now, applied=False)
            case ErrorAction.LOSE_SESSION:
                self._lose(
                    f"the broker no longer knows the session of node {self.node_id}"
                )
                self._pause(now, answer.throttle)
            case ErrorAction.REFUSE:
                self._fail_acknowledgements(answer, now)
                self.events.append(
                    fatal_error(self._settings.group_id, self.node_id, answer)
                )
                self._finish("the broker refuses to serve this member")
            case _:
                # Whether the broker counted this request is unknown.
                self._reopen_session(sent, answer, now, applied=True)
        if request.share_session_epoch == CLOSING and self._closing:
            self._finish("the session was closed")
        elif request.share_session_epoch == CLOSING:
            self._lose("the session was closed")

    def failed(self, request: Request, error: Error, now: float) -> None:
        self.connection_lost(error, now)

    def connection_lost(self, error: Error, now: float) -> None:
        """The connection ended; also while no request was in flight."""
        self._sent.clear()
        self._lose(f"the connection to node {self.node_id} was lost: {error}")
        if isinstance(error, (AuthenticationError, UnsupportedVersionError)):
            self.events.append(FatalError(error))
            self.finished = True
        elif self._closing:
            self.finished = True
        else:
            self.events.append(MetadataStale(f"node {self.node_id}: {error}"))
            self._pause(now, 0.0)

    # Which request.

    def _choose(self, now: float) -> Request | None:
        if self._closing:
            return self._close(now)
        if self._may_reopen(now):
            return self._requests.acknowledge(now, closing=True)
        self._requests.look_at_releases(now)
        fetching = bool(self.wanted) and self._fetch_due(now) <= now
        if self._acknowledges(now, fetching):
            return self._requests.acknowledge(now)
        if fetching:
            backlog = self.backlog
            return self._requests.fetch(now, self.wanted, self.leaders, backlog=backlog)
        if self.batcher.pending and not self._session.is_open:
            return self._requests.fetch(
                now, self.wanted, self.leaders, opening_only=True
            )
        return None

    def _fetch_due(self, now: float) -> float:
        return self._requests.next_due(now, self.wanted, ahead=self.backlog)

    def _may_follow(self, now: float) -> bool:
        """True if a fetch may be sent behind what is under way, which brings much."""
        if len(self._sent) != 1 or self._closing or now < self._not_before:
            return False
        sent = self._sent[0]
        wanted = self._requests.fetchable(self.wanted, now)
        if not sent.is_plain or wanted is not self._session.partitions:
            return False
        return self.backlog and self._requests.is_due_behind(sent, wanted, now)

    def _may_reopen(self, now: float) -> bool:
        """Return whether to close the session and open another one.

        That releases records that a throttled response did not have: else they stay
        locked. It releases all others too, so there may be none. A broker that goes on
        returning empty responses at once may return records in another session.
        """
        acknowledgements = self.batcher
        return (
            (self._requests.has_lost(now) or self._empties.to_reopen)
            and self._session.is_open
            and not acknowledgements.held
            and not acknowledgements.pending
        )

    def _close(self, now: float) -> ShareAcknowledge | None:
        if not self._session.is_open:
            self._finish("the consumer was closed")
            return None
        # A renewal has no sense any more: its record is given back.
        self.batcher.stop_renewing()
        return self._requests.acknowledge(now, closing=True)

    def _acknowledges(self, now: float, fetching: bool) -> bool:
        """True if acknowledgements are due by themselves."""
        acknowledgements = self.batcher
        acknowledgements.freeze()
        if not acknowledgements.pending:
            self._linger.end()
            return False
        if not self._session.is_open:
            self._linger.due = now
            return False
        self._linger.begin(now)
        if acknowledgements.renews:
            return True
        return not fetching and self._linger.is_due(now)

    def _sending(self, request: Request | None, now: float) -> Request | None:
        if request is not None:
            self._sent.append(Sent(request, now, self._session))
        return request

    # What the answers mean.

    def _proceed(self, sent: Sent, answer: Answer, now: float) -> None:
        request = sent.request
        self._waits.told(answer.lock_timeout)
        if isinstance(request, ShareFetch) and isinstance(answer, ShareFetched):
            if sent.resets == self._session.resets:
                self._session.fetched()
            self.batcher.renewable = answer.renewable
            self.backlog = self._response_handler.handle(
                sent, request, answer, now, self.topics, self.events
            )
        if request.acknowledgements:
            self.batcher.answered(
                answer.partitions,
                error=None,
                renewed_until=self._renewed_until(request, now),
                now=now,
            )
            self._empties.changed()
        for partition in answer.partitions:
            if partition.acknowledge_error:
                self.events += ack_error_event(partition)
        self._back_off_on_errors(request, answer, now)

    def _reopen_session(
        self, sent: Sent, answer: Answer, now: float, *, applied: bool
    ) -> None:
        """The session is out of step; the locks are the member's, and outlive it.

        `applied` says that what the request acknowledged may have been.
        """
        if sent.resets == self._session.resets:
            self._session.reset()
        if sent.request.acknowledgements and applied:
            self._fail_acknowledgements(answer, now)
        elif sent.request.acknowledgements:
            self.batcher.resend()
        self._pause(now, answer.throttle)

    def _back_off_on_errors(self, request: Request, answer: Answer, now: float) -> None:
        """Nothing that failed is asked for again at the speed of a round trip."""
        failed = self._pauses.other_failures(answer.partitions, now)
        idle = failed and not [p for p in answer.partitions if p.acquired]
        to_retry = self.batcher.to_retry
        if idle or (to_retry and request.acknowledgements):
            self._pause(now, answer.throttle)
        elif not to_retry:
            self._backoff.reset()

    def _renewed_until(self, request: Request, now: float) -> float:
        # The request's own time would be safer by a round trip; but a renewal is
        # answered at once, and the broker may be slow to write it.
        renewing = isinstance(request, ShareAcknowledge) and request.renewing
        return now + self._waits.lock_timeout if renewing else 0.0

    def _fail_acknowledgements(self, answer: Answer, now: float) -> None:
        code, message = answer.error, answer.message or ""
        error = AcknowledgeError(code, code_name(code), message)
        self.batcher.answered((), error=error, renewed_until=0.0, now=now)

    # Trouble.

    def _pause(self, now: float, throttle: float) -> None:
        # Closing waits for nothing but what is to be said once more.
        if not self._closing or self.batcher.to_retry:
            self._not_before = now + max(self._backoff.next_delay(), throttle)

    def _lose(self, why: str) -> None:
        term = self._session.term
        held = self.batcher.held
        self._session.lost(why)
        self.batcher.lost(term)
        self._linger.end()
        if held and not self._closing:
            self.events.append(LocksLost(why, held))

    def _finish(self, why: str) -> None:
        self._lose(why)
        self.finished = True
