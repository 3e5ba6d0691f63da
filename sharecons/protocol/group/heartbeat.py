"""The heartbeat: joining a share group, staying in it, leaving it.

Theory of operation
-------------------
The client chooses the member id, the coordinator the member epoch. Epoch 0 joins, -1
leaves; other heartbeats repeat the last epoch received. A fenced member keeps its id
and joins again with epoch 0 (KIP-932, "Group membership"). It sends all fields again,
since the coordinator might have lost them.

The coordinator assigns partitions about a second after the first heartbeat, and
returns them only in the response to a heartbeat. So a member without an assignment
sends one every 0.1 s for a while, instead of at the heartbeat interval (5 s).

FindCoordinator is sent first, and again after the coordinator has moved or the
connection was lost; the assignment is kept meanwhile. A leave that a coordinator which
moves or loads has rejected, or that was lost, is repeated in the same way. `states` has
the states and the transitions.
"""

import math
from typing import Final

from sharecons.errors import AuthenticationError, Error, UnsupportedVersionError
from sharecons.protocol import error_actions
from sharecons.protocol.backoff import Backoff, spread_of
from sharecons.protocol.error_actions import ErrorAction, action_for
from sharecons.protocol.group.heartbeat_interval import HeartbeatInterval
from sharecons.protocol.group.heartbeat_status import HeartbeatStatus
from sharecons.protocol.group.messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    FindCoordinator,
    FindCoordinatorResponse,
    Heartbeat,
    HeartbeatResponse,
)
from sharecons.protocol.group.rejections import (
    is_other_type,
    is_previous_member,
    rejection_error,
)
from sharecons.protocol.group.states import TRANSITIONS, MembershipEvent, State
from sharecons.protocol.group.subscription import Subscription
from sharecons.protocol.partitions import Endpoint, SharePartition

__all__ = ["Membership"]

REJOIN_DELAY: Final = 60.0
MAX_REJOIN_DELAY: Final = 600.0
"""Seconds between two rejoins because a broker returns nothing: each one takes the
partitions from the member for about a second, and can assign them to others."""

MAX_LEAVE_TIME: Final = 45.0
"""Seconds for which the leave is repeated: group.share.session.timeout.ms, after which
the coordinator removes the member."""

REPEATED: Final = (ErrorAction.FIND_COORDINATOR, ErrorAction.RETRY)
"""The leave is repeated after codes with these actions. After others, such as
UNKNOWN_MEMBER_ID, the member has left, or cannot leave."""

Request = FindCoordinator | Heartbeat
Response = FindCoordinatorResponse | HeartbeatResponse


class Membership:
    """The state machine of one member; see `sharecons.protocol` for its contract.

    Attributes:
        assignment: the last assignment received; empty outside the group.
        fatal_error: the error that ended the membership, or None.
        error_to_report: an error to raise once; the caller resets it to None.
        coordinator: the group coordinator; None while it is looked up.
        heartbeats: the result of the last heartbeat.
    """

    def __init__(self, group_id: str, member_id: str, *, rack: str | None = None):
        self.group_id = group_id
        self.member_id = member_id
        self.state = State.OUT
        self.assignment: frozenset[SharePartition] = frozenset()
        self.fatal_error: Error | None = None
        self.error_to_report: Error | None = None
        self.coordinator: Endpoint | None = None
        self.heartbeats = HeartbeatStatus()
        self.member_epoch = JOIN_EPOCH
        self._rack = rack
        self._subscription = Subscription()
        self._confirmed_topics: tuple[str, ...] | None = None
        self._interval = HeartbeatInterval()
        self._due = math.inf
        self._leave_until = 0.0
        self._closing = False
        self._evicting_previous = False
        self._rejoin_after = 0.0
        self._rejoin_delay = REJOIN_DELAY
        # Since the last leave: a coordinator could know the member.
        self._has_contacted = False
        self._backoff = Backoff(spread_of(member_id))

    @property
    def finished(self) -> bool:
        """True if no request will follow."""
        if self.state is State.REFUSED:
            return True
        return self._closing and self.state is State.OUT

    def subscribe(self, topics: tuple[str, ...], now: float) -> None:
        """Subscribe to these topics; without topics, leave the group."""
        if self._closing:
            return
        self._subscription.change(topics)
        if not topics:
            self._leave(now)
            return
        self._transition(MembershipEvent.SUBSCRIBED)
        self.heartbeat_soon(now)

    def exclude_topics(self, topics: frozenset[str], now: float) -> None:
        """Leave unauthorized topics out: with them, every heartbeat is rejected."""
        self._subscription.unauthorized = topics
        if self._subscription.changed_topics(self._confirmed_topics) is not None:
            self.heartbeat_soon(now)

    def heartbeat_soon(self, now: float) -> None:
        """Send early heartbeats for a while, as the assignment is about to change."""
        if self.state in (State.JOINING, State.MEMBER):
            self._due = min(self._due, now)
            self._interval.begin_early(now)

    def rejoin(self, now: float) -> bool:
        """Leave the group and join again; return False if it is too soon for that."""
        if self.state is not State.MEMBER or now < self._rejoin_after:
            return False
        self._rejoin_after = now + self._rejoin_delay
        self._rejoin_delay = min(2 * self._rejoin_delay, MAX_REJOIN_DELAY)
        self._on_fenced(now)
        self._due = now
        # With a leave first: brokers load a group's state again only once it has no
        # members (4.3.0, 4.4.0). A join alone returns the assignment unchanged.
        self._evicting_previous = True
        return True

    def close(self, now: float) -> None:
        """Leave the group and finish."""
        self._closing = True
        self._subscription.change(())
        self._leave(now)

    def next_deadline(self, now: float) -> float:
        return math.inf if self.state in (State.OUT, State.REFUSED) else self._due

    def next_request(self, now: float) -> Request | None:
        if self.state in (State.OUT, State.REFUSED) or now < self._due:
            return None
        if self.coordinator is None:
            # A fresh cluster creates its coordinator's topic at this request only:
            # without it every heartbeat would get NOT_COORDINATOR (4.3.0).
            return FindCoordinator(group_id=self.group_id)
        self._has_contacted = True
        if self.state is State.LEAVING or self._evicting_previous:
            return self._heartbeat(LEAVE_EPOCH, None, None)
        # Topics and rack are sent only if they have changed since the coordinator last
        # confirmed them; None means unchanged.
        topics = self._subscription.changed_topics(self._confirmed_topics)
        rack = self._rack if self._confirmed_topics is None else None
        return self._heartbeat(self.member_epoch, rack, topics)

    def on_response(self, request: Request, response: Response, now: float) -> None:
        if self.state is State.OUT:
            return  # left while this request was in flight
        if isinstance(response, FindCoordinatorResponse):
            self._on_find_coordinator_response(response, now)
        elif isinstance(request, Heartbeat):
            self._on_heartbeat_response(request, response, now)

    def on_error(self, request: Request, error: Error, now: float) -> None:
        self.heartbeats.on_failed()
        if self.state is State.OUT:
            return
        is_lasting = isinstance(error, AuthenticationError | UnsupportedVersionError)
        if self.state is State.LEAVING:
            self._on_error_while_leaving(request, now, is_lasting=is_lasting)
        elif is_lasting:
            self._fail(error)
        else:
            self._find_coordinator(now)

    # Responses.

    def _on_find_coordinator_response(
        self, response: FindCoordinatorResponse, now: float
    ) -> None:
        match action_for(error_actions.HEARTBEAT, response.error):
            case ErrorAction.PROCEED:
                self.coordinator = response.endpoint
                self._due = now
            case _ if self.state is State.LEAVING:
                self._on_leave_response(response.error, now)
            case ErrorAction.RAISE_FATAL:
                self._fail(self._rejection(response))
            case _:
                self._due = now + self._backoff.next_delay()

    def _on_heartbeat_response(
        self, request: Heartbeat, response: HeartbeatResponse, now: float
    ) -> None:
        if request.member_epoch == LEAVE_EPOCH:
            self._on_leave_response(response.error, now)
        elif self.state is State.LEAVING or self._evicting_previous:
            # The leave was requested while this heartbeat was in flight: whatever its
            # response, the member leaves.
            self._due = now
        else:
            self._handle_heartbeat(request, response, now)

    def _handle_heartbeat(
        self, request: Heartbeat, response: HeartbeatResponse, now: float
    ) -> None:
        self.heartbeats.on_failed()
        match action_for(error_actions.HEARTBEAT, response.error):
            case ErrorAction.PROCEED:
                self._on_accepted(request, response, now)
            case ErrorAction.REJOIN if not is_other_type(request, response):
                self._on_fenced(now)
                self._evicting_previous = is_previous_member(request, response)
            case ErrorAction.FIND_COORDINATOR:
                self._find_coordinator(now)
            case ErrorAction.REJOIN | ErrorAction.RAISE_FATAL:
                self._fail(self._rejection(response))
            case ErrorAction.REPORT:
                if self._subscription.on_rejected(response.error):
                    self.error_to_report = self._rejection(response)
                self._retry(response, now)
            case _:
                self._retry(response, now)

    def _on_accepted(
        self, request: Heartbeat, response: HeartbeatResponse, now: float
    ) -> None:
        if self.state is State.JOINING:
            self._interval.begin_early(now)  # even if the join took long
        self._transition(MembershipEvent.ADMITTED)
        self._backoff.reset()
        self._subscription.on_accepted()
        self.member_epoch = response.member_epoch
        self._interval.on_response(response.heartbeat_interval)
        if request.topics is not None:
            self._confirmed_topics = request.topics
        if response.assignment is not None:
            self.assignment = response.assignment
            # An empty one comes with the join, the partitions about a second later.
            if response.assignment:
                self._interval.end_early(now)
        self._due = now + max(self._next_interval(now), response.throttle)
        self.heartbeats.on_accepted(now, self._due + self._interval.usual)

    def _next_interval(self, now: float) -> float:
        if self._subscription.changed_topics(self._confirmed_topics) is not None:
            return 0.0  # the subscription changed while this heartbeat was in flight
        return self._interval.next(now)

    def _on_fenced(self, now: float) -> None:
        self._transition(MembershipEvent.FENCED)
        self.member_epoch = JOIN_EPOCH
        self.assignment = frozenset()
        self._confirmed_topics = None
        # Immediately the first time, as in the KIP; with a backoff if the member is
        # fenced repeatedly.
        is_repeated = self._interval.is_early(now)
        self._due = now + self._backoff.next_delay() if is_repeated else now
        self._interval.begin_early(now)

    def _find_coordinator(self, now: float) -> None:
        # The new coordinator might not know the member, and the old one might not have
        # received the last heartbeat: send all fields again.
        self.coordinator = None
        self._confirmed_topics = None
        self._due = now + self._backoff.next_delay()

    def _retry(self, response: HeartbeatResponse, now: float) -> None:
        # Which fields the coordinator has applied is not known: send all again.
        self._confirmed_topics = None
        self._due = now + max(self._backoff.next_delay(), response.throttle)

    def _rejection(self, response: Response) -> Error:
        return rejection_error(self.group_id, response.error, response.message)

    def _fail(self, error: Error) -> None:
        self._transition(MembershipEvent.REFUSED)
        self.fatal_error = error
        self.assignment = frozenset()

    # Leaving.

    def _leave(self, now: float) -> None:
        self.heartbeats.on_failed()
        self._transition(MembershipEvent.LEAVE_REQUESTED)
        self.assignment = frozenset()
        if self.state is State.LEAVING:
            self._due = now
            self._leave_until = now + MAX_LEAVE_TIME
            self._backoff.reset()
            if self.coordinator is None and not self._has_contacted:
                # No coordinator knows the member, so none has to be found.
                self._on_left(now)

    def _on_error_while_leaving(
        self, request: Request, now: float, *, is_lasting: bool
    ) -> None:
        if isinstance(request, Heartbeat) and request.member_epoch != LEAVE_EPOCH:
            self._due = now  # sent before the leave was requested
        elif is_lasting:
            self._on_left(now)
        else:
            self._repeat_leave(now)

    def _on_leave_response(self, code: int, now: float) -> None:
        """Handle the response to the leave, or the error of its lookup."""
        is_repeated = action_for(error_actions.HEARTBEAT, code) in REPEATED
        self._evicting_previous &= is_repeated
        if self.state is State.LEAVING and is_repeated:
            self._repeat_leave(now)
        elif self.state is State.LEAVING:
            self._on_left(now)
        elif is_repeated:
            self._find_coordinator(now)  # leave there, before the join
        else:
            self._due = now  # join

    def _repeat_leave(self, now: float) -> None:
        """Look up the coordinator after a backoff, and send the leave again.

        Without it the member's partitions stay assigned until its session timeout. A
        member that is subscribed again joins instead.
        """
        self.coordinator = None
        self._due = now + self._backoff.next_delay()
        if self._subscription.topics or self._due >= self._leave_until:
            self._on_left(now)

    def _on_left(self, now: float) -> None:
        self._transition(MembershipEvent.LEFT)
        self._has_contacted = False
        self.member_epoch = JOIN_EPOCH
        self._confirmed_topics = None
        self._due = math.inf
        if self._subscription.topics:
            self._transition(MembershipEvent.SUBSCRIBED)
            self.heartbeat_soon(now)

    def _transition(self, event: MembershipEvent) -> None:
        self.state = TRANSITIONS[self.state, event]

    def _heartbeat(
        self, epoch: int, rack: str | None, topics: tuple[str, ...] | None
    ) -> Heartbeat:
        return Heartbeat(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            rack=rack,
            topics=topics,
        )
