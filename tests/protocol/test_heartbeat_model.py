"""The membership against a coordinator that loses, fences, moves, loads and forgets."""

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
from sharecons.protocol.group.heartbeat import Membership, Request, Response, State
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
from tests.protocol.hypothesis_profile import MACHINE
from tests.protocol.membership_harness import MEMBER_ID
from tests.protocol.message_factories import P0, P1, P2

INTERVAL = 5.0
LOST = ConnectionFailedError("the connection broke")
ASSIGNMENTS = {"a": P0, "b": P1, "c": P2}

Topics = tuple[str, ...]
topics = st.lists(st.sampled_from(sorted(ASSIGNMENTS)), min_size=1, unique=True)
fates = st.sampled_from(
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
        "unheard of",
    ]
)
OUTSIDE = {
    "loading": Code.COORDINATOR_LOAD_IN_PROGRESS,
    "topic forbidden": Code.TOPIC_AUTHORIZATION_FAILED,
    "unheard of": 9_999,
}


class Coordinator:
    """A group coordinator with one member, which checks its heartbeats."""

    def __init__(self, rack: str | None) -> None:
        self.rack = rack
        self.node = 0
        self.epoch: int | None = None
        self.topics: Topics = ()
        self.given: set[int] = set()

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(f"broker-{self.node}", 9092)

    def forget(self) -> None:
        self.epoch, self.topics = None, ()

    def heartbeat(self, request: Heartbeat) -> HeartbeatResponse:
        assert ("billing", MEMBER_ID) == (request.group_id, request.member_id)
        if request.member_epoch == LEAVE_EPOCH:
            self.forget()
            return self._answer(0, LEAVE_EPOCH, None)
        if request.member_epoch == JOIN_EPOCH:
            assert request.topics, "a join has topics"
            assert self.rack == request.rack
            self.epoch = 0
        elif self.epoch is None:
            return self._answer(Code.UNKNOWN_MEMBER_ID, 0, None)
        else:
            assert request.member_epoch in self.given
        return self._admit(request)

    def _admit(self, request: Heartbeat) -> HeartbeatResponse:
        assert self.epoch is not None
        if request.topics is None and request.member_epoch != JOIN_EPOCH:
            assert self.topics, "as before, but there is nothing before"
        elif request.topics is not None and request.topics != self.topics:
            self.topics = request.topics
            self.epoch += 1
        self.epoch = max(self.epoch, 1)
        self.given.add(self.epoch)
        return self._answer(0, self.epoch, self.assignment)

    @property
    def assignment(self) -> frozenset[SharePartition]:
        return frozenset(ASSIGNMENTS[topic] for topic in self.topics)

    def _answer(
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

    def refuse(self, code: int) -> HeartbeatResponse:
        return self._answer(code, 0, None)

    def found(self, code: int = 0) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            error=code, message=None, node_id=self.node, endpoint=self.endpoint
        )


class MemberAndCoordinator(RuleBasedStateMachine):
    @initialize(rack=st.sampled_from([None, "a"]))
    def begin(self, rack: str | None) -> None:
        self.now = 0.0
        self.coordinator = Coordinator(rack)
        self.membership = Membership("billing", MEMBER_ID, rack=rack)
        self.wanted: Topics = ()
        self.under_way: Request | None = None
        self.repeated: Counter[str] = Counter()
        self.must_say_all = True
        self.closed = False

    # Calls of the application.

    @precondition(lambda self: not self.closed)
    @rule(wanted=topics)
    def subscribe(self, wanted: list[str]) -> None:
        self.wanted = tuple(wanted)
        self.membership.subscribe(self.wanted, self.now)
        self.repeated.clear()

    @precondition(lambda self: not self.closed)
    @rule()
    def unsubscribe(self) -> None:
        self.wanted = ()
        self.membership.subscribe((), self.now)
        self.repeated.clear()

    @rule()
    def a_topic_appears(self) -> None:
        self.membership.heartbeat_soon(self.now)
        self.repeated.clear()

    @rule()
    def rejoin(self) -> None:
        if self.membership.rejoin(self.now):
            self.must_say_all = True
            self.repeated.clear()

    # Calls of the driver.

    @rule(seconds=st.sampled_from([0.001, 0.07, 0.4, 2.0, INTERVAL, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.pass_until(self.now + seconds)

    @rule()
    def send(self) -> None:
        if self.under_way is None:
            due = self.membership.next_deadline(self.now)
            self.under_way = self.membership.next_request(self.now)
            assert (due <= self.now) == (self.under_way is not None)
            self.see(self.under_way)

    @precondition(lambda self: self.under_way is not None)
    @rule(fate=fates)
    def arrive(self, fate: str) -> None:
        request, self.under_way = self.under_way, None
        assert request is not None
        if fate == "late":
            self.pass_until(self.now + 3 * INTERVAL)
        if fate == "lost before":
            self.membership.on_error(request, LOST, self.now)
            self.must_say_all = True
            return
        answer = self.answer(request, fate)
        if fate == "lost after":
            self.membership.on_error(request, LOST, self.now)
            self.must_say_all = True
        else:
            self.membership.on_response(request, answer, self.now)
            self.note(answer)

    def answer(self, request: Request, fate: str) -> Response:
        coordinator = self.coordinator
        if isinstance(request, FindCoordinator):
            outside = fate in ("loading", "moved", "unheard of")
            return coordinator.found(Code.COORDINATOR_NOT_AVAILABLE if outside else 0)
        if fate.startswith("moved"):
            coordinator.node += 1
            if fate == "moved and forgotten":
                coordinator.forget()
        if self.membership.coordinator != coordinator.endpoint:
            return coordinator.refuse(Code.NOT_COORDINATOR)
        if fate == "fenced" and request.member_epoch > 0:
            return coordinator.refuse(Code.FENCED_MEMBER_EPOCH)
        if fate == "group forgotten" and request.member_epoch > 0:
            coordinator.forget()
            return coordinator.refuse(Code.GROUP_ID_NOT_FOUND)
        if fate in OUTSIDE:
            return coordinator.refuse(OUTSIDE[fate])
        return coordinator.heartbeat(request)

    # Invariants.

    def see(self, request: Request | None) -> None:
        if request is None:
            return
        self.repeated[repr(request)] += 1
        assert self.repeated[repr(request)] <= 2, "the same again, and no time passed"
        if isinstance(request, Heartbeat) and request.member_epoch != LEAVE_EPOCH:
            assert request.member_epoch in {JOIN_EPOCH, *self.coordinator.given}
            if self.must_say_all:
                assert self.wanted == request.topics
                assert self.coordinator.rack == request.rack

    def note(self, answer: Response) -> None:
        if isinstance(answer, HeartbeatResponse):
            self.must_say_all = bool(answer.error) or answer.member_epoch < 0

    def pass_until(self, then: float) -> None:
        if then > self.now:
            self.now = then
            self.repeated.clear()

    @invariant()
    def what_is_assigned_was_given_and_nothing_is_outside_the_group(self) -> None:
        membership = self.membership
        assert membership.assignment <= frozenset(ASSIGNMENTS.values())
        if membership.state in (State.OUT, State.LEAVING):
            assert not membership.assignment

    @invariant()
    def nothing_that_happened_was_worth_refusing(self) -> None:
        assert self.membership.fatal_error is None

    @invariant()
    def who_wants_topics_is_in_or_on_the_way(self) -> None:
        assert bool(self.wanted) == (
            self.membership.state in (State.JOINING, State.MEMBER)
            or (self.membership.state is State.LEAVING and bool(self.wanted))
        )

    @precondition(lambda self: not self.closed)
    @rule()
    def all_goes_well_for_a_while(self) -> None:
        began = self.now
        while self.now < began + 4 * INTERVAL:
            if self.under_way is not None:
                self.arrive("good")
            due = self.membership.next_deadline(self.now)
            if due == math.inf:
                break
            self.pass_until(due)
            self.send()

        if self.wanted:
            assert State.MEMBER is self.membership.state
            assert self.wanted == self.coordinator.topics
            assert self.coordinator.assignment == self.membership.assignment
        else:
            assert State.OUT is self.membership.state

    @rule(fates=st.lists(fates, min_size=4, max_size=4))
    def close(self, fates: list[str]) -> None:
        self.closed = True
        self.wanted = ()
        self.membership.close(self.now)
        for fate in fates:
            self.send()
            if self.under_way is not None:
                self.arrive(fate)

        assert self.membership.finished
        assert math.inf == self.membership.next_deadline(self.now)

    def teardown(self) -> None:
        if hasattr(self, "membership"):
            self.close(["good"] * 4)


MemberAndCoordinator.TestCase.settings = MACHINE
TestMemberAndCoordinator = MemberAndCoordinator.TestCase
