"""The state machine of one partition leader: its next request, and its responses.

It decides whether to send a ShareFetch or a ShareAcknowledge. Session epochs come from
`session_manager`, contents from `request_builder`; `fetch_control` decides when a fetch
is due and what it requests. The package's docstring has its theory of operation.
"""

import math

from sharecons.errors import (
    AuthenticationError,
    ConnectionFailedError,
    Error,
    UnsupportedVersionError,
)
from sharecons.protocol import error_actions
from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.linger import AckLinger
from sharecons.protocol.backoff import spread_of
from sharecons.protocol.codes import Code
from sharecons.protocol.error_actions import ErrorAction, action_for
from sharecons.protocol.fetch.error_events import ack_error_event, fatal_error
from sharecons.protocol.fetch.events import (
    EndpointsLearned,
    FatalError,
    LeaderEvent,
    LocksLost,
    MetadataStale,
    StartsFixed,
)
from sharecons.protocol.fetch.fetch_control import FetchControl
from sharecons.protocol.fetch.fetch_pauses import AUTHORIZATION, FetchPauses
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.fetch.request_builder import RequestBuilder
from sharecons.protocol.fetch.request_pause import RequestPause
from sharecons.protocol.fetch.response_handler import ResponseHandler
from sharecons.protocol.fetch.retried_errors import FetchAccepted, FetchRejected
from sharecons.protocol.fetch.session_manager import CLOSING, ShareSession
from sharecons.protocol.fetch.settings import FetchSettings
from sharecons.protocol.fetch.start_offsets import StartOffsets
from sharecons.protocol.partitions import SharePartition, TopicId
from sharecons.protocol.share_messages import (
    ShareAcknowledge,
    ShareAcknowledgeResponse,
    ShareFetch,
    ShareFetchResponse,
)

__all__ = ["Leader", "Request", "Response"]

Request = ShareFetch | ShareAcknowledge
Response = ShareFetchResponse | ShareAcknowledgeResponse


class Leader:
    """The state machine of one leader; see `sharecons.protocol` for its contract.

    Attributes:
        partitions: the partitions to fetch from this leader.
        topic_names: topic names by id; set by the caller.
        batcher: the acknowledgements of its records.
        events: results of its responses; emptied by the caller.
        leader_count: how many leaders share the prefetch allowance; set by the caller.
        has_backlog: more records are available than the last fetch returned.
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
        self._pause = RequestPause(spread)
        self._linger = AckLinger()
        self._closing = False
        self._control = FetchControl(
            settings, self._session, prefetch, batcher, self._pauses
        )
        self._builder = RequestBuilder(
            settings, self._session, batcher, self._linger, self._control
        )
        self._response_handler = ResponseHandler(
            node_id, self._session, prefetch, batcher, self._control, self._pauses
        )
        self._starts = StartOffsets(spread, self._pauses, self._session)
        self._sent_at: float | None = None  # None while no request is in flight
        self._rejected = False  # the last fetch, and it is repeated
        self.has_backlog = True

    # Calls of the driver.

    def set_partitions(self, partitions: frozenset[SharePartition]) -> None:
        """Fetch these partitions; the next fetch removes others from the session."""
        if partitions != self.partitions:
            self._control.on_partitions_changed()
            self.batcher.redeliveries.keep_only(partitions)
            self._response_handler.acks.keep_only(partitions)
            self._starts.set_partitions(partitions)
        self.partitions = partitions

    @property
    def fixed_starts(self) -> frozenset[SharePartition]:
        """The partitions in which the group's start offset is fixed."""
        return self._starts.fixed

    def flush_acks(self) -> None:
        """Send acknowledgements without lingering."""
        self._linger.urgent = True

    def close(self) -> None:
        """Stop fetching, send pending acknowledgements and close the session."""
        self._closing = True
        self._pause.until = 0.0
        if not self._session.is_open and self._sent_at is None:
            self._finish("the consumer was closed")

    def is_idle(self, now: float) -> bool:
        """Return whether no partition, lease or request is left."""
        self.batcher.forget_expired(now)
        busy = self.batcher.leases or self.batcher.has_pending
        return not (self.partitions or busy or self._sent_at is not None)

    # The machine's contract.

    def next_deadline(self, now: float) -> float:
        if self.finished:
            return math.inf
        due = self._linger.due
        batcher = self.batcher
        # A linger that has not begun, and acknowledgements that are in no batch yet (a
        # renewal does not linger), need a call of `next_request`.
        at_once = self._linger.urgent or due == math.inf or batcher.has_uncollected
        if self._closing or (at_once and batcher.has_pending):
            due = now
        due = min(due, batcher.next_delay_check)
        if self.partitions:
            due = min(due, self._fetch_due(now), self._starts.next_due())
        if self._must_reopen(now):
            due = now
        due = min(due, self._control.next_reopen(now))
        return max(due, self._pause.until)

    def next_request(self, now: float) -> Request | None:
        if self.finished or self._sent_at is not None or now < self._pause.until:
            return None
        request = self._choose_request(now)
        if request is not None:
            self._sent_at = now
        return request

    def on_response(self, request: Request, response: Response, now: float) -> None:
        sent_at, self._sent_at = self._sent_at, None
        assert sent_at is not None, "a response follows a request"
        if response.endpoints:
            self.events.append(EndpointsLearned(dict(response.endpoints)))
        self._pause.throttle(now, response.throttle)
        self._starts.on_response(now)
        self.events += self._response_handler.acks.on_response(request, response)
        if not response.error:
            self._on_success(request, response, sent_at, now)
        else:
            self._on_error_response(request, response, now)
        if request.share_session_epoch == CLOSING and self._closing:
            self._finish("the session was closed")
        elif request.share_session_epoch == CLOSING:
            # To be reopened: the broker has released the records of lost responses.
            self._lose_locks("the session was closed")

    def _on_error_response(
        self, request: Request, response: Response, now: float
    ) -> None:
        action = action_for(error_actions.FETCH, response.error)
        if isinstance(request, ShareFetch) and action is not ErrorAction.RAISE_FATAL:
            self._rejected = True
            code, message = response.error, response.message
            self.events.append(FetchRejected(self.node_id, code, message))
        match action:
            case ErrorAction.RAISE_FATAL if self._starts.gives_up(request, response):
                self.events.append(StartsFixed(self.node_id))
                self._reopen_session(request, response, now, applied=False)
            case ErrorAction.REOPEN_SESSION:
                # Locks outlive the session on a live connection (measured on 4.3.0), so
                # its acknowledgements are sent again in the next session.
                self._reopen_session(request, response, now, applied=False)
            case ErrorAction.LOSE_SESSION:
                self._lose_locks(
                    f"the broker no longer knows the session of node {self.node_id}"
                )
                self._back_off(now, response.throttle)
            case ErrorAction.RAISE_FATAL:
                self.batcher.fail_sent(response.error, response.message or "", now)
                self.events.append(
                    fatal_error(self._settings.group_id, self.node_id, response)
                )
                self._finish("the broker rejected this member")
            case _:
                # Whether the broker counted this request is unknown.
                self._reopen_session(request, response, now, applied=True)

    def on_error(self, request: Request, error: Error, now: float) -> None:
        self._control.on_error(request, error, now)
        self.connection_lost(error, now)

    def connection_lost(self, error: Error, now: float) -> None:
        """The connection ended; also while no request was in flight."""
        # Brokers release all records of a connection when it ends.
        self._sent_at = None
        self._starts.on_connection_lost(self.partitions)
        reason = f"the connection to node {self.node_id} was lost: {error}"
        self._lose_locks(reason, Code.NETWORK_EXCEPTION)
        if isinstance(error, (AuthenticationError, UnsupportedVersionError)):
            self.events.append(FatalError(error))
            self.finished = True
        elif self._closing:
            self.finished = True
        else:
            is_outage = isinstance(error, ConnectionFailedError)
            reason = f"node {self.node_id}: {error}"
            self.events.append(MetadataStale(reason, is_outage))
            self._back_off(now, 0.0)

    # The next request.

    def _choose_request(self, now: float) -> Request | None:
        if self._closing:
            return self._closing_request(now)
        self.batcher.update_delays(now)
        if self._must_reopen(now):
            return self._builder.build_acknowledge(now, closing=True)
        if self.batcher.update_release_pauses(now):
            self._prefetch.restart()
        fetching = bool(self.partitions) and self._fetch_due(now) <= now
        if self._ack_is_due(now, fetching):
            return self._builder.build_acknowledge(now)
        if fetching:
            backlog, leaders = self.has_backlog, self.leader_count
            return self._builder.build_fetch(
                now, self.partitions, leaders, backlog=backlog
            )
        if self.batcher.has_pending and not self._session.is_open:
            # Brokers accept epoch 0 in a ShareFetch only.
            return self._builder.build_fetch(
                now, self.partitions, self.leader_count, opening_only=True
            )
        if self.partitions and self._starts.next_due() <= now:
            return self._builder.build_start_fetch(self._starts.fetchable(now))
        return None

    def _fetch_due(self, now: float) -> float:
        return self._control.next_due(now, self.partitions, ahead=self.has_backlog)

    def _must_reopen(self, now: float) -> bool:
        """Return whether to close the session and open another one.

        This releases all records, so no lease must be left.
        """
        batcher = self.batcher
        return (
            self._control.must_reopen(now)
            and self._session.is_open
            and not batcher.leases
            and not batcher.has_pending
        )

    def _closing_request(self, now: float) -> ShareAcknowledge | None:
        if not self._session.is_open:
            self._finish("the consumer was closed")
            return None
        # Closing the session releases renewed records.
        self.batcher.release_delayed()
        self.batcher.fail_renewals()
        return self._builder.build_acknowledge(now, closing=True)

    def _ack_is_due(self, now: float, fetching: bool) -> bool:
        """Return whether to send acknowledgements without a fetch."""
        batcher = self.batcher
        batcher.collect()
        if not batcher.has_pending:
            self._linger.end()
            return False
        if not self._session.is_open:
            self._linger.due = now  # a fetch opens it, see `_choose_request`
            return False
        self._linger.begin(now)
        if batcher.has_renewals:
            return True  # never with a fetch, even if one is due
        return not fetching and self._linger.is_due(now)

    # Responses.

    def _on_success(
        self, request: Request, response: Response, sent_at: float, now: float
    ) -> None:
        self._control.on_success(response.lock_timeout)
        if isinstance(request, ShareFetch) and isinstance(response, ShareFetchResponse):
            self._session.on_fetch_response()
            if self._rejected:
                self._rejected = False
                self.events.append(FetchAccepted(self.node_id))
            self.batcher.renewable = response.renewable
            has_backlog = self._response_handler.handle(
                request, response, sent_at, now, self.topic_names, self.events
            )
            # A fetch for start offsets shows nothing about a backlog.
            if request.max_records > 0:
                self.has_backlog = has_backlog
            if self._starts.pending and self._starts.on_fetched(
                request, response, self._session.partitions, now
            ):
                self.events.append(StartsFixed(self.node_id))
        if request.acknowledgements:
            self.batcher.on_response(
                response.partitions,
                error=None,
                renewed_until=self._renewed_until(request, now),
                now=now,
            )
            self._control.on_acknowledged()
            if isinstance(request, ShareAcknowledge):
                self._prefetch.on_round_trip(now - sent_at)
        for partition in response.partitions:
            if code := partition.acknowledge_error:
                self.events += ack_error_event(partition)
                if code in AUTHORIZATION:  # after others, it could use up deliveries
                    self._control.release_from = now
        self._back_off_on_errors(request, response, now)

    def _reopen_session(
        self, request: Request, response: Response, now: float, *, applied: bool
    ) -> None:
        """Open a new session, as the epochs do not match; the member keeps its locks.

        Args:
            applied: the broker might have applied the request's acknowledgements.
        """
        self._session.reset()
        if request.acknowledgements and applied:
            self.batcher.fail_sent(response.error, response.message or "", now)
        elif request.acknowledgements:
            self.batcher.resend()
        self._back_off(now, response.throttle)

    def _back_off_on_errors(
        self, request: Request, response: Response, now: float
    ) -> None:
        """Back off after a response with errors."""
        failed = [p for p in response.partitions if p.error]
        failed = failed and self._pauses.unpaused_errors(failed, now)
        # If other partitions returned records, a pause would delay them as well.
        idle = failed and not [p for p in response.partitions if p.acquired]
        to_retry = self.batcher.needs_backoff
        if idle or (to_retry and request.acknowledgements):
            self._back_off(now, response.throttle)
        elif not to_retry:
            self._pause.on_success()

    def _renewed_until(self, request: Request, now: float) -> float:
        # The time of the request would be safer by a round trip; but the broker
        # responds immediately, and can persist a renewal slowly.
        renewing = isinstance(request, ShareAcknowledge) and request.is_renew_ack
        return now + self._control.lock_timeout if renewing else 0.0

    # Errors.

    def _back_off(self, now: float, throttle: float) -> None:
        # A close waits only for acknowledgements to be sent again.
        if not self._closing or self.batcher.needs_backoff:
            self._pause.back_off(now, throttle)

    def _lose_locks(
        self, reason: str, code: Code = Code.SHARE_SESSION_NOT_FOUND
    ) -> None:
        lock_scope = self._session.lock_scope
        held = self.batcher.leases
        self._session.on_lost(reason, code)
        self.batcher.on_session_lost(lock_scope)
        self._linger.end()
        if held and not self._closing:
            self.events.append(LocksLost(reason, held))

    def _finish(self, reason: str) -> None:
        self._lose_locks(reason)
        self.finished = True
