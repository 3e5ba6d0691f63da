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

import math

from sharecons.errors import AuthenticationError, Error, UnsupportedVersionError
from sharecons.protocol import error_actions
from sharecons.protocol.acknowledge.batcher import AckBatcher, AcknowledgeError
from sharecons.protocol.acknowledge.linger import AckLinger
from sharecons.protocol.backoff import Backoff, spread_of
from sharecons.protocol.codes import code_name
from sharecons.protocol.error_actions import ErrorAction, action_for
from sharecons.protocol.fetch.arrival_rate import ArrivalRate
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
from sharecons.protocol.fetch.max_wait import MaxWait
from sharecons.protocol.fetch.pauses import FetchPauses
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.fetch.request_builder import RequestBuilder, SentRequest
from sharecons.protocol.fetch.response_handler import ResponseHandler
from sharecons.protocol.fetch.session_manager import CLOSING, ShareSession
from sharecons.protocol.messages import (
    FetchSettings,
    ShareAcknowledge,
    ShareAcknowledgeResponse,
    ShareFetch,
    ShareFetchResponse,
    SharePartition,
    TopicId,
)

__all__ = ["Leader"]

Request = ShareFetch | ShareAcknowledge
Response = ShareFetchResponse | ShareAcknowledgeResponse


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
        prefetch: Prefetch,
        batcher: AckBatcher,
        pauses: FetchPauses | None = None,
    ) -> None:
        self.node_id = node_id
        self.partitions: frozenset[SharePartition] = frozenset()
        self.topic_names: dict[TopicId, str] = {}
        self.batcher = batcher
        self.events: list[LeaderEvent] = []
        self.leader_count = 1
        self.finished = False
        self._settings = settings
        self._prefetch = prefetch
        self._session = ShareSession()
        spread = spread_of(settings.member_id)
        self._pauses = pauses or FetchPauses(spread)
        self._backoff = Backoff(spread)
        self._empty_responses = EmptyResponses(spread, settings.max_wait)
        self._not_before = 0.0
        self._arrival_rate = ArrivalRate()
        self._linger = AckLinger()
        self._closing = False
        self._max_wait = MaxWait(settings.max_wait)
        self._request_builder = RequestBuilder(
            settings,
            self._session,
            prefetch,
            batcher,
            self._arrival_rate,
            self._linger,
            self._max_wait,
            self._empty_responses,
            self._pauses,
        )
        self._response_handler = ResponseHandler(
            node_id,
            self._session,
            prefetch,
            batcher,
            self._arrival_rate,
            self._request_builder,
            self._max_wait,
            self._empty_responses,
            self._pauses,
        )
        self._in_flight: list[SentRequest] = []
        self.has_backlog = True

    # What the shell tells.

    def set_partitions(self, partitions: frozenset[SharePartition]) -> None:
        """Fetch these from now on; the others are forgotten with the next fetch."""
        if partitions != self.partitions:
            self._empty_responses.reset()
            self.batcher.redeliveries.keep_only(partitions)
        self.partitions = partitions

    def flush_acks(self) -> None:
        """Somebody waits for acknowledgements: do not let them gather."""
        self._linger.urgent = True

    def close(self) -> None:
        """Fetch no more; say what is to be said, and close the session."""
        self._closing = True
        self._not_before = 0.0
        if not self._session.is_open and not self._in_flight:
            self._finish("the consumer was closed")

    def is_idle(self, now: float) -> bool:
        """True once nothing is fetched here and nothing more can be said here."""
        self.batcher.forget_expired(now)
        busy = self.batcher.leases or self.batcher.has_pending
        return not (self.partitions or busy or self._in_flight)

    # The machine's contract.

    def next_deadline(self, now: float) -> float:
        if self.finished:
            return math.inf
        due = self._linger.due
        acknowledgements = self.batcher
        at_once = (
            self._linger.urgent or due == math.inf or acknowledgements.has_uncollected
        )
        if self._closing or (at_once and acknowledgements.has_pending):
            due = now
        if self.partitions:
            due = min(due, self._fetch_due(now))
        if self._must_reopen(now):
            due = now
        return max(due, self._not_before)

    def next_request(self, now: float) -> Request | None:
        if self.finished or self._in_flight or now < self._not_before:
            return None
        return self._track(self._choose_request(now), now)

    def next_pipelined_request(self, now: float) -> Request | None:
        """Give a fetch to be sent behind the one under way, if one is due.

        To be asked when a part of that one's answer is here, and more to come. It is
        answered after the other.
        """
        if not self._can_pipeline(now) or self._acknowledgement_is_due(
            now, fetching=True
        ):
            return None
        if self.batcher.redeliveries.has_releases:
            return None
        request = self._request_builder.build_fetch(
            now, self.partitions, self.leader_count, backlog=True, pipelined=True
        )
        return self._track(request, now)

    def on_response(self, request: Request, response: Response, now: float) -> None:
        sent = self._in_flight.pop(0)
        if response.endpoints:
            self.events.append(EndpointsLearned(dict(response.endpoints)))
        # Of two requests under way, the second does not end the first one's pause.
        self._not_before = max(self._not_before, now + response.throttle)
        match action_for(error_actions.FETCH, response.error):
            case ErrorAction.PROCEED:
                self._on_success(sent, response, now)
            case ErrorAction.REOPEN_SESSION:
                self._reopen_session(sent, response, now, applied=False)
            case ErrorAction.LOSE_SESSION:
                self._lose_locks(
                    f"the broker no longer knows the session of node {self.node_id}"
                )
                self._back_off(now, response.throttle)
            case ErrorAction.RAISE_FATAL:
                self._fail_acknowledgements(response, now)
                self.events.append(
                    fatal_error(self._settings.group_id, self.node_id, response)
                )
                self._finish("the broker refuses to serve this member")
            case _:
                # Whether the broker counted this request is unknown.
                self._reopen_session(sent, response, now, applied=True)
        if request.share_session_epoch == CLOSING and self._closing:
            self._finish("the session was closed")
        elif request.share_session_epoch == CLOSING:
            self._lose_locks("the session was closed")

    def on_error(self, request: Request, error: Error, now: float) -> None:
        self.connection_lost(error, now)

    def connection_lost(self, error: Error, now: float) -> None:
        """The connection ended; also while no request was in flight."""
        self._in_flight.clear()
        self._lose_locks(f"the connection to node {self.node_id} was lost: {error}")
        if isinstance(error, (AuthenticationError, UnsupportedVersionError)):
            self.events.append(FatalError(error))
            self.finished = True
        elif self._closing:
            self.finished = True
        else:
            self.events.append(MetadataStale(f"node {self.node_id}: {error}"))
            self._back_off(now, 0.0)

    # Which request.

    def _choose_request(self, now: float) -> Request | None:
        if self._closing:
            return self._closing_request(now)
        if self._must_reopen(now):
            return self._request_builder.build_acknowledge(now, closing=True)
        self._request_builder.update_release_pauses(now)
        fetching = bool(self.partitions) and self._fetch_due(now) <= now
        if self._acknowledgement_is_due(now, fetching):
            return self._request_builder.build_acknowledge(now)
        if fetching:
            backlog = self.has_backlog
            return self._request_builder.build_fetch(
                now, self.partitions, self.leader_count, backlog=backlog
            )
        if self.batcher.has_pending and not self._session.is_open:
            return self._request_builder.build_fetch(
                now, self.partitions, self.leader_count, opening_only=True
            )
        return None

    def _fetch_due(self, now: float) -> float:
        return self._request_builder.next_due(
            now, self.partitions, ahead=self.has_backlog
        )

    def _can_pipeline(self, now: float) -> bool:
        """True if a fetch may be sent behind what is under way, which brings much."""
        if len(self._in_flight) != 1 or self._closing or now < self._not_before:
            return False
        sent = self._in_flight[0]
        wanted = self._request_builder.fetchable(self.partitions, now)
        if not sent.keeps_session or wanted is not self._session.partitions:
            return False
        return self.has_backlog and self._request_builder.can_pipeline(
            sent, wanted, now
        )

    def _must_reopen(self, now: float) -> bool:
        """Return whether to close the session and open another one.

        That releases records that a throttled response did not have: else they stay
        locked. It releases all others too, so there may be none. A broker that goes on
        returning empty responses at once may return records in another session.
        """
        acknowledgements = self.batcher
        return (
            (
                self._request_builder.has_lost_records(now)
                or self._empty_responses.must_reopen
            )
            and self._session.is_open
            and not acknowledgements.leases
            and not acknowledgements.has_pending
        )

    def _closing_request(self, now: float) -> ShareAcknowledge | None:
        if not self._session.is_open:
            self._finish("the consumer was closed")
            return None
        # A renewal has no sense any more: its record is given back.
        self.batcher.fail_renewals()
        return self._request_builder.build_acknowledge(now, closing=True)

    def _acknowledgement_is_due(self, now: float, fetching: bool) -> bool:
        """True if acknowledgements are due by themselves."""
        acknowledgements = self.batcher
        acknowledgements.collect()
        if not acknowledgements.has_pending:
            self._linger.end()
            return False
        if not self._session.is_open:
            self._linger.due = now
            return False
        self._linger.begin(now)
        if acknowledgements.has_renewals:
            return True
        return not fetching and self._linger.is_due(now)

    def _track(self, request: Request | None, now: float) -> Request | None:
        if request is not None:
            self._in_flight.append(SentRequest(request, now, self._session))
        return request

    # What the answers mean.

    def _on_success(self, sent: SentRequest, answer: Response, now: float) -> None:
        request = sent.request
        self._max_wait.set_lock_timeout(answer.lock_timeout)
        if isinstance(request, ShareFetch) and isinstance(answer, ShareFetchResponse):
            if sent.session_resets == self._session.resets:
                self._session.on_fetch_response()
            self.batcher.renewable = answer.renewable
            self.has_backlog = self._response_handler.handle(
                sent, request, answer, now, self.topic_names, self.events
            )
        if request.acknowledgements:
            self.batcher.on_response(
                answer.partitions,
                error=None,
                renewed_until=self._renewed_until(request, now),
                now=now,
            )
            self._empty_responses.end_pause()
        for partition in answer.partitions:
            if partition.acknowledge_error:
                self.events += ack_error_event(partition)
        self._back_off_on_errors(request, answer, now)

    def _reopen_session(
        self, sent: SentRequest, answer: Response, now: float, *, applied: bool
    ) -> None:
        """The session is out of step; the locks are the member's, and outlive it.

        `applied` says that what the request acknowledged may have been.
        """
        if sent.session_resets == self._session.resets:
            self._session.reset()
        if sent.request.acknowledgements and applied:
            self._fail_acknowledgements(answer, now)
        elif sent.request.acknowledgements:
            self.batcher.resend()
        self._back_off(now, answer.throttle)

    def _back_off_on_errors(
        self, request: Request, answer: Response, now: float
    ) -> None:
        """Nothing that failed is asked for again at the speed of a round trip."""
        failed = self._pauses.unpaused_errors(answer.partitions, now)
        idle = failed and not [p for p in answer.partitions if p.acquired]
        to_retry = self.batcher.needs_backoff
        if idle or (to_retry and request.acknowledgements):
            self._back_off(now, answer.throttle)
        elif not to_retry:
            self._backoff.reset()

    def _renewed_until(self, request: Request, now: float) -> float:
        # The request's own time would be safer by a round trip; but a renewal is
        # answered at once, and the broker may be slow to write it.
        renewing = isinstance(request, ShareAcknowledge) and request.is_renew_ack
        return now + self._max_wait.lock_timeout if renewing else 0.0

    def _fail_acknowledgements(self, answer: Response, now: float) -> None:
        code, message = answer.error, answer.message or ""
        error = AcknowledgeError(code, code_name(code), message)
        self.batcher.on_response((), error=error, renewed_until=0.0, now=now)

    # Trouble.

    def _back_off(self, now: float, throttle: float) -> None:
        # Closing waits for nothing but what is to be said once more.
        if not self._closing or self.batcher.needs_backoff:
            self._not_before = now + max(self._backoff.next_delay(), throttle)

    def _lose_locks(self, why: str) -> None:
        term = self._session.lock_scope
        held = self.batcher.leases
        self._session.on_lost(why)
        self.batcher.on_session_lost(term)
        self._linger.end()
        if held and not self._closing:
            self.events.append(LocksLost(why, held))

    def _finish(self, why: str) -> None:
        self._lose_locks(why)
        self.finished = True
