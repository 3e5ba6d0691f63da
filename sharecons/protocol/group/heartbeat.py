"""Membership of a share group: joining it, staying in it, leaving it.

Rule 1: whatever decides which heartbeat goes out next lives in this file.
Rule 2: this file meets no socket, clock or chance. Time comes in as `now`.

Theory of operation
-------------------
The coordinator knows us by an id that we chose and an epoch that it hands out.
Epoch 0 asks to join, -1 to leave; in between we repeat the last epoch we were
given. Being fenced is no failure: we keep the id and join again from 0 (KIP-932,
"Group membership"), saying everything anew, since the coordinator may know
nothing of us any more.

The coordinator assigns about a second after the first heartbeat, and tells only
who asks: so a member without an assignment asks again every 0.1 s for a while,
where others wait for the heartbeat interval (5 s).

Who the coordinator is has to be asked first, and again whenever it moved or was
lost; the assignment is kept meanwhile. The states and the moves between them are
TRANSITIONS; docs/design.md draws its diagram from that table.
"""

import enum
import math
from collections.abc import Mapping
from typing import Final

from sharecons.errors import AuthenticationError, Error, UnsupportedVersionError
from sharecons.protocol import error_actions
from sharecons.protocol.backoff import Backoff, spread_of
from sharecons.protocol.codes import Code
from sharecons.protocol.error_actions import ErrorAction, action_for
from sharecons.protocol.group.heartbeat_status import HeartbeatStatus
from sharecons.protocol.group.rejections import rejection_error
from sharecons.protocol.group.subscription import Subscription
from sharecons.protocol.messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    Endpoint,
    FindCoordinator,
    FindCoordinatorResponse,
    Heartbeat,
    HeartbeatResponse,
    SharePartition,
)

__all__ = ["TRANSITIONS", "Membership", "MembershipEvent", "State"]

EARLY_INTERVAL: Final = 0.1
EARLY_PERIOD: Final = 3.0
"""Three times share.assignment.interval.ms (1 s); later the usual pace will do."""

DEFAULT_INTERVAL: Final = 5.0  # group.share.heartbeat.interval.ms, until told
MIN_INTERVAL: Final = 0.1  # whatever a broker may be configured to say

REJOIN_DELAY: Final = 60.0
MAX_REJOIN_DELAY: Final = 600.0
"""Seconds between two times that a member leaves because a broker returns nothing:
each takes its partitions away from it, and may give them to others, for a second."""


class State(enum.Enum):
    OUT = "out"
    JOINING = "joining"
    MEMBER = "member"
    LEAVING = "leaving"
    REFUSED = "refused"


class MembershipEvent(enum.Enum):
    SUBSCRIBED = "subscribed"
    ADMITTED = "admitted"
    FENCED = "fenced"
    ASKED_TO_LEAVE = "asked to leave"
    LEFT = "left"
    REFUSED = "refused"


TRANSITIONS: Final[Mapping[tuple[State, MembershipEvent], State]] = {
    (State.OUT, MembershipEvent.SUBSCRIBED): State.JOINING,
    (State.OUT, MembershipEvent.ASKED_TO_LEAVE): State.OUT,
    (State.JOINING, MembershipEvent.SUBSCRIBED): State.JOINING,
    (State.JOINING, MembershipEvent.ADMITTED): State.MEMBER,
    (State.JOINING, MembershipEvent.FENCED): State.JOINING,
    # The join may have been heard although we never saw its answer.
    (State.JOINING, MembershipEvent.ASKED_TO_LEAVE): State.LEAVING,
    (State.JOINING, MembershipEvent.REFUSED): State.REFUSED,
    (State.MEMBER, MembershipEvent.SUBSCRIBED): State.MEMBER,
    (State.MEMBER, MembershipEvent.ADMITTED): State.MEMBER,
    (State.MEMBER, MembershipEvent.FENCED): State.JOINING,
    (State.MEMBER, MembershipEvent.ASKED_TO_LEAVE): State.LEAVING,
    (State.MEMBER, MembershipEvent.REFUSED): State.REFUSED,
    # Subscribed again while the leave is under way: leave first, then join.
    (State.LEAVING, MembershipEvent.SUBSCRIBED): State.LEAVING,
    (State.LEAVING, MembershipEvent.ASKED_TO_LEAVE): State.LEAVING,
    (State.LEAVING, MembershipEvent.LEFT): State.OUT,
    (State.REFUSED, MembershipEvent.SUBSCRIBED): State.REFUSED,
    (State.REFUSED, MembershipEvent.ASKED_TO_LEAVE): State.REFUSED,
}

Request = FindCoordinator | Heartbeat
Response = FindCoordinatorResponse | HeartbeatResponse


class Membership:
    """The machine of one member; its contract is the package's.

    Attributes:
        assignment: what the coordinator last assigned; empty outside the group.
        refusal: the error that ended the membership for good, or None.
        reported: an error to raise to the application once; taken by the shell.
        coordinator: where the heartbeats go; None while it is being looked up.
        heartbeats: whether they are accepted.
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
        self._interval = DEFAULT_INTERVAL
        self._due = math.inf
        self._early_until = 0.0
        self._closing = False
        self._evicting_previous = False
        self._rejoin_after = 0.0
        self._rejoin_delay = REJOIN_DELAY
        self._has_contacted = False  # since we were last out: a coordinator may know us
        self._backoff = Backoff(spread_of(member_id))

    @property
    def finished(self) -> bool:
        """True once nothing will be sent any more."""
        if self.state is State.REFUSED:
            return True
        return self._closing and self.state is State.OUT

    def subscribe(self, topics: tuple[str, ...], now: float) -> None:
        """Ask for these topics; none at all means leaving the group."""
        if self._closing:
            return
        self._subscription.change(topics)
        if not topics:
            self._leave(now)
            return
        self._transition(MembershipEvent.SUBSCRIBED)
        self.heartbeat_soon(now)

    def exclude_topics(self, topics: frozenset[str], now: float) -> None:
        """Note the topics that may not be read: they would keep the others out."""
        self._subscription.unauthorized = topics
        if self._subscription.changed_topics(self._confirmed_topics) is not None:
            self.heartbeat_soon(now)

    def heartbeat_soon(self, now: float) -> None:
        """Ask early for a while: something that bears on the assignment changed."""
        if self.state in (State.JOINING, State.MEMBER):
            self._due = min(self._due, now)
            self._early_until = now + EARLY_PERIOD

    def rejoin(self, now: float) -> bool:
        """Leave the group and join again at once; return False if it is too soon."""
        if self.state is not State.MEMBER or now < self._rejoin_after:
            return False
        self._rejoin_after = now + self._rejoin_delay
        self._rejoin_delay = min(2 * self._rejoin_delay, MAX_REJOIN_DELAY)
        self._on_fenced(now)
        self._due = now
        self._evicting_previous = True
        return True

    def close(self, now: float) -> None:
        """Leave the group for good."""
        self._closing = True
        self._subscription.change(())
        self._leave(now)

    def next_deadline(self, now: float) -> float:
        return math.inf if self.state in (State.OUT, State.REFUSED) else self._due

    def next_request(self, now: float) -> Request | None:
        if self.state in (State.OUT, State.REFUSED) or now < self._due:
            return None
        if self.coordinator is None:
            return FindCoordinator(group_id=self.group_id)
        self._has_contacted = True
        if self.state is State.LEAVING or self._evicting_previous:
            return self._heartbeat(LEAVE_EPOCH, None, None)
        # Topics and rack travel only when they changed since the coordinator last
        # confirmed them; None means "as before".
        news = self._subscription.changed_topics(self._confirmed_topics)
        rack = self._rack if self._confirmed_topics is None else None
        return self._heartbeat(self.member_epoch, rack, news)

    def on_response(self, request: Request, response: Response, now: float) -> None:
        if self.state is State.OUT:
            return  # left while this was under way: nothing is asked any more
        if isinstance(response, FindCoordinatorResponse):
            self._on_find_coordinator_response(response, now)
        elif isinstance(request, Heartbeat):
            self._on_heartbeat_response(request, response, now)

    def on_error(self, request: Request, error: Error, now: float) -> None:
        self.heartbeats.on_failed()
        if self.state is State.OUT:
            return
        if self.state is State.LEAVING:
            self._on_error_while_leaving(request, now)
        elif isinstance(error, AuthenticationError | UnsupportedVersionError):
            self._fail(error)
        else:
            self._find_coordinator(now)

    # What the answers mean.

    def _on_find_coordinator_response(
        self, answer: FindCoordinatorResponse, now: float
    ) -> None:
        match action_for(error_actions.HEARTBEAT, answer.error):
            case ErrorAction.PROCEED:
                self.coordinator = answer.endpoint
                self._due = now
            case _ if self.state is State.LEAVING:
                self._on_left(now)
            case ErrorAction.RAISE_FATAL:
                self._fail(rejection_error(self.group_id, answer.error, answer.message))
            case _:
                self._due = now + self._backoff.next_delay()

    def _on_heartbeat_response(
        self, request: Heartbeat, answer: HeartbeatResponse, now: float
    ) -> None:
        if request.member_epoch == LEAVE_EPOCH and self._evicting_previous:
            self._evicting_previous = False
            self._due = now
        elif request.member_epoch == LEAVE_EPOCH:
            # Whatever it says: UNKNOWN_MEMBER_ID means gone already, and an error
            # is not worth holding up the close for.
            self._on_left(now)
        elif self.state is State.LEAVING:
            # We were told to leave while this heartbeat was under way: its answer
            # is old news, and the leave is still to be sent.
            self._due = now
        else:
            self._handle_heartbeat(request, answer, now)

    def _handle_heartbeat(
        self, request: Heartbeat, answer: HeartbeatResponse, now: float
    ) -> None:
        self.heartbeats.on_failed()
        match action_for(error_actions.HEARTBEAT, answer.error):
            case ErrorAction.PROCEED:
                self._on_accepted(request, answer, now)
            case ErrorAction.REJOIN if not self._is_other_group_type(request, answer):
                self._on_fenced(now)
                self._evicting_previous = self._is_previous_member(request, answer)
            case ErrorAction.FIND_COORDINATOR:
                self._find_coordinator(now)
            case ErrorAction.REJOIN | ErrorAction.RAISE_FATAL:
                self._fail(rejection_error(self.group_id, answer.error, answer.message))
            case ErrorAction.REPORT:
                if self._subscription.on_rejected(answer.error):
                    self.error_to_report = rejection_error(
                        self.group_id, answer.error, answer.message
                    )
                self._retry(answer, now)
            case _:
                self._retry(answer, now)

    def _is_other_group_type(
        self, request: Heartbeat, answer: HeartbeatResponse
    ) -> bool:
        """A join makes a share group unless its id is a group of another kind."""
        return (
            answer.error == Code.GROUP_ID_NOT_FOUND
            and request.member_epoch == JOIN_EPOCH
        )

    def _is_previous_member(
        self, request: Heartbeat, answer: HeartbeatResponse
    ) -> bool:
        """Kafka 4.1 fences a join under an id that it knows under a later epoch.

        Such a member leaves in the name of who had the id before, and joins then;
        newer brokers let it join.
        """
        return (
            answer.error == Code.FENCED_MEMBER_EPOCH
            and request.member_epoch == JOIN_EPOCH
        )

    def _on_accepted(
        self, request: Heartbeat, answer: HeartbeatResponse, now: float
    ) -> None:
        if self.state is State.JOINING:
            self._early_until = now + EARLY_PERIOD  # however long that took
        self._transition(MembershipEvent.ADMITTED)
        self._backoff.reset()
        self._subscription.on_accepted()
        self.member_epoch = answer.member_epoch
        interval = answer.heartbeat_interval
        known = interval if interval > 0.0 else DEFAULT_INTERVAL
        self._interval = max(known, MIN_INTERVAL)
        if request.topics is not None:
            self._confirmed_topics = request.topics
        if answer.assignment is not None:
            self.assignment = answer.assignment
            if answer.assignment:
                self._early_until = now
        self._due = now + max(self._next_interval(now), answer.throttle)
        self.heartbeats.on_accepted(now, self._due + self._interval)

    def _next_interval(self, now: float) -> float:
        if self._subscription.changed_topics(self._confirmed_topics) is not None:
            return 0.0  # subscribed otherwise while this heartbeat was under way
        if now < self._early_until:
            return min(EARLY_INTERVAL, self._interval)
        return self._interval

    def _on_fenced(self, now: float) -> None:
        self._transition(MembershipEvent.FENCED)
        self.member_epoch = JOIN_EPOCH
        self.assignment = frozenset()
        self._confirmed_topics = None
        # At once the first time, as the KIP has it; a coordinator that goes on
        # fencing us is not asked at the speed of a round trip.
        self._due = (
            now if self._early_until <= now else now + self._backoff.next_delay()
        )
        self._early_until = now + EARLY_PERIOD

    def _find_coordinator(self, now: float) -> None:
        # The new coordinator may know nothing of us, and the old one may not have
        # heard us: say everything again.
        self.coordinator = None
        self._confirmed_topics = None
        self._due = now + self._backoff.next_delay()

    def _retry(self, answer: HeartbeatResponse, now: float) -> None:
        self._confirmed_topics = None
        self._due = now + max(self._backoff.next_delay(), answer.throttle)

    def _fail(self, error: Error) -> None:
        self._transition(MembershipEvent.REFUSED)
        self.fatal_error = error
        self.assignment = frozenset()

    # Leaving.

    def _leave(self, now: float) -> None:
        self.heartbeats.on_failed()
        self._transition(MembershipEvent.ASKED_TO_LEAVE)
        self.assignment = frozenset()
        if self.state is State.LEAVING:
            self._due = now
            if self.coordinator is None and not self._has_contacted:
                # Nobody to tell, and no reason to look for one.
                self._on_left(now)

    def _on_error_while_leaving(self, request: Request, now: float) -> None:
        """A request was lost while we are to leave.

        The leave is worth one try, and one look for a coordinator that is lost: a
        member that goes without a word keeps its partitions from others until the
        session timeout.
        """
        if isinstance(request, Heartbeat) and request.member_epoch != LEAVE_EPOCH:
            self._due = now
        else:
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

    # Small things.

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
