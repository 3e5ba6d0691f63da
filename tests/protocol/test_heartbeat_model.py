"""A member and a coordinator whose requests and responses fail in many ways."""

import math
from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from sharecons.errors import ConnectionFailedError
from sharecons.protocol.codes import Code
from sharecons.protocol.group.heartbeat import Membership, Request, Response
from sharecons.protocol.group.messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    FindCoordinator,
    FindCoordinatorResponse,
    Heartbeat,
    HeartbeatResponse,
)
from sharecons.protocol.group.states import State
from sharecons.protocol.partitions import Endpoint, SharePartition
from tests.protocol.hypothesis_profile import MACHINE, search
from tests.protocol.membership_harness import MEMBER_ID
from tests.protocol.message_factories import P0, P1, P2

INTERVAL = 5.0
LOST = ConnectionFailedError("the connection broke")
ASSIGNMENTS = {"a": P0, "b": P1, "c": P2}

Topics = tuple[str, ...]
topics = st.lists(st.sampled_from(sorted(ASSIGNMENTS)), min_size=1, unique=True)
outcomes = st.sampled_from(
    [
        "good",
        "good",
        "late",
        "lost before",
        "lost after",
        "fenced",
        "moved",
        "moved and forgotten",
        "loading",
        "group forgotten",
        "topic forbidden",
        "unknown error",
    ]
)
ERRORS = {
    "loading": Code.COORDINATOR_LOAD_IN_PROGRESS,
    "topic forbidden": Code.TOPIC_AUTHORIZATION_FAILED,
    "unknown error": 9_999,
}
LEAVE_IS_REPEATED = (Code.NOT_COORDINATOR, ERRORS["loading"], ERRORS["unknown error"])


class Coordinator:
    """A group coordinator with one member, which checks its heartbeats."""

    def __init__(self, rack: str | None) -> None:
        self.rack = rack
        self.node = 0
        self.epoch: int | None = None
        self.topics: Topics = ()
        self.sent_epochs: set[int] = set()

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(f"broker-{self.node}", 9092)

    def forget(self) -> None:
        self.epoch, self.topics = None, ()

    def heartbeat(self, request: Heartbeat) -> HeartbeatResponse:
        assert ("billing", MEMBER_ID) == (request.group_id, request.member_id)
        if request.member_epoch == LEAVE_EPOCH:
            self.forget()
            return self._respond(0, LEAVE_EPOCH, None)
        if request.member_epoch == JOIN_EPOCH:
            assert request.topics, "a join without topics"
            assert self.rack == request.rack
            self.epoch = 0
        elif self.epoch is None:
            return self._respond(Code.UNKNOWN_MEMBER_ID, 0, None)
        else:
            assert request.member_epoch in self.sent_epochs
        return self._admit(request)

    def _admit(self, request: Heartbeat) -> HeartbeatResponse:
        assert self.epoch is not None
        if request.topics is None and request.member_epoch != JOIN_EPOCH:
            assert self.topics, "unchanged topics, but the coordinator has none"
        elif request.topics is not None and request.topics != self.topics:
            self.topics = request.topics
            self.epoch += 1
        self.epoch = max(self.epoch, 1)
        self.sent_epochs.add(self.epoch)
        return self._respond(0, self.epoch, self.assignment)

    @property
    def assignment(self) -> frozenset[SharePartition]:
        return frozenset(ASSIGNMENTS[topic] for topic in self.topics)

    def _respond(
        self, code: int, epoch: int, assignment: frozenset[SharePartition] | None
    ) -> HeartbeatResponse:
        return HeartbeatResponse(
            error=code,
            message=None,
            member_epoch=epoch,
            heartbeat_interval=INTERVAL,
            assignment=assignment,
            throttle=0.0,
        )

    def reject(self, code: int) -> HeartbeatResponse:
        return self._respond(code, 0, None)

    def found(self, code: int = 0) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            error=code, message=None, node_id=self.node, endpoint=self.endpoint
        )


class MemberAndCoordinator(RuleBasedStateMachine):
    """A member, its coordinator, and the request in flight between them."""

    @initialize(rack=st.sampled_from([None, "a"]))
    def begin(self, rack: str | None) -> None:
        self.now = 0.0
        self.coordinator = Coordinator(rack)
        self.membership = Membership("billing", MEMBER_ID, rack=rack)
        self.subscribed: Topics = ()
        self.in_flight: Request | None = None
        self.repetitions: Counter[str] = Counter()
        self.all_fields_due = True
        self.leave_due = False
        self.closed = False

    # Calls of the application.

    @precondition(lambda self: not self.closed)
    @rule(subscribed=topics)
    def subscribe(self, subscribed: list[str]) -> None:
        self.subscribed = tuple(subscribed)
        self.membership.subscribe(self.subscribed, self.now)
        self.repetitions.clear()

    @precondition(lambda self: not self.closed)
    @rule()
    def unsubscribe(self) -> None:
        self.subscribed = ()
        self.membership.subscribe((), self.now)
        self.repetitions.clear()

    @rule()
    def topic_appears(self) -> None:
        self.membership.heartbeat_soon(self.now)
        self.repetitions.clear()

    @rule()
    def rejoin(self) -> None:
        if self.membership.rejoin(self.now):
            self.leave_due = self.all_fields_due = True
            self.repetitions.clear()

    # Calls of the driver.

    @rule(seconds=st.sampled_from([0.001, 0.07, 0.4, 2.0, INTERVAL, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.pass_until(self.now + seconds)

    @rule()
    def send(self) -> None:
        if self.in_flight is None:
            due = self.membership.next_deadline(self.now)
            self.in_flight = self.membership.next_request(self.now)
            assert (due <= self.now) == (self.in_flight is not None)
            self.check_request(self.in_flight)

    @precondition(lambda self: self.in_flight is not None)
    @rule(outcome=outcomes)
    def arrive(self, outcome: str) -> None:
        request, self.in_flight = self.in_flight, None
        assert request is not None
        if outcome == "late":
            self.pass_until(self.now + 3 * INTERVAL)
        if outcome == "lost before":
            self.membership.on_error(request, LOST, self.now)
            self.all_fields_due = True
            return
        response = self.respond(request, outcome)
        if outcome == "lost after":
            self.membership.on_error(request, LOST, self.now)
            self.all_fields_due = True
        else:
            self.membership.on_response(request, response, self.now)
            self.on_received(request, response)

    def respond(self, request: Request, outcome: str) -> Response:
        coordinator = self.coordinator
        if isinstance(request, FindCoordinator):
            failed = outcome in ("loading", "moved", "unknown error")
            return coordinator.found(Code.COORDINATOR_NOT_AVAILABLE if failed else 0)
        if outcome.startswith("moved"):
            coordinator.node += 1
            if outcome == "moved and forgotten":
                coordinator.forget()
        if self.membership.coordinator != coordinator.endpoint:
            return coordinator.reject(Code.NOT_COORDINATOR)
        if outcome == "fenced" and request.member_epoch > 0:
            return coordinator.reject(Code.FENCED_MEMBER_EPOCH)
        if outcome == "group forgotten" and request.member_epoch > 0:
            coordinator.forget()
            return coordinator.reject(Code.GROUP_ID_NOT_FOUND)
        if outcome in ERRORS:
            return coordinator.reject(ERRORS[outcome])
        return coordinator.heartbeat(request)

    # Invariants.

    def check_request(self, request: Request | None) -> None:
        if request is None:
            return
        self.repetitions[repr(request)] += 1
        assert self.repetitions[repr(request)] <= 2, (
            "the same request again without a pause"
        )
        if isinstance(request, Heartbeat) and request.member_epoch != LEAVE_EPOCH:
            assert not self.leave_due, "a rejoin without a leave"
            assert request.member_epoch in {JOIN_EPOCH, *self.coordinator.sent_epochs}
            if self.all_fields_due:
                assert self.subscribed == request.topics
                assert self.coordinator.rack == request.rack

    def on_received(self, request: Request, response: Response) -> None:
        if not isinstance(request, Heartbeat):
            return
        assert isinstance(response, HeartbeatResponse)
        if request.member_epoch != LEAVE_EPOCH:
            # Until the leave, responses are to requests from before the rejoin.
            self.all_fields_due = bool(response.error) or self.leave_due
        elif response.error not in LEAVE_IS_REPEATED:
            self.leave_due = False
            self.all_fields_due = True

    def pass_until(self, then: float) -> None:
        if then > self.now:
            self.now = then
            self.repetitions.clear()

    @invariant()
    def assignment_is_known_and_empty_outside_the_group(self) -> None:
        membership = self.membership
        assert membership.assignment <= frozenset(ASSIGNMENTS.values())
        if self.leave_due or membership.state in (State.OUT, State.LEAVING):
            assert not membership.assignment

    @invariant()
    def no_error_is_fatal(self) -> None:
        assert self.membership.fatal_error is None

    @invariant()
    def subscribed_member_is_in_the_group_or_joining(self) -> None:
        assert bool(self.subscribed) == (
            self.membership.state in (State.JOINING, State.MEMBER)
            or (self.membership.state is State.LEAVING and bool(self.subscribed))
        )

    @precondition(lambda self: not self.closed)
    @rule()
    def run_without_faults(self) -> None:
        began = self.now
        while self.now < began + 4 * INTERVAL:
            if self.in_flight is not None:
                self.arrive("good")
            due = self.membership.next_deadline(self.now)
            if due == math.inf:
                break
            self.pass_until(due)
            self.send()

        if self.subscribed:
            assert State.MEMBER is self.membership.state
            assert self.subscribed == self.coordinator.topics
            assert self.coordinator.assignment == self.membership.assignment
        else:
            assert State.OUT is self.membership.state

    @rule(outcomes=st.lists(outcomes, min_size=4, max_size=4))
    def close(self, outcomes: list[str]) -> None:
        self.closed = True
        self.subscribed = ()
        self.membership.close(self.now)
        closed_at = self.now
        for outcome in (*outcomes, *["good"] * 4):
            if self.membership.finished:
                break
            self.pass_until(self.membership.next_deadline(self.now))
            self.send()
            if self.in_flight is not None:
                self.arrive(outcome)

        assert self.membership.finished
        assert self.now < closed_at + 5 * 3 * INTERVAL
        assert math.inf == self.membership.next_deadline(self.now)

    def teardown(self) -> None:
        if hasattr(self, "membership"):
            self.close(["good"] * 4)


MemberAndCoordinator.TestCase.settings = MACHINE
TestMemberAndCoordinator = search(MemberAndCoordinator.TestCase)
