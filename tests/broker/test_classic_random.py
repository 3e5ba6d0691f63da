"""A classic group under random requests."""

import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.groups.classic import (
    ClassicGroup,
    JoinRequest,
    State,
    SyncRequest,
)

INSTANCES = st.sampled_from([None, None, "i1", "i2"])
PROTOCOLS = st.sampled_from(
    [
        (("range", b"1"),),
        (("range", b"2"), ("sticky", b"2")),
        (("sticky", b"3"), ("range", b"3")),
    ]
)
TIMEOUTS = st.sampled_from([0.0, 5.0, 20.0])


class Group(RuleBasedStateMachine):
    @initialize(delay=st.sampled_from([0.0, 3.0]), size=st.sampled_from([2, 100]))
    def begin(self, delay, size):
        self.group = ClassicGroup("g", initial_delay=delay, max_size=size)
        self.now = 0.0
        self.made = 0
        self.known = [""]
        self.generation = 0

    @rule(
        data=st.data(),
        instance=INSTANCES,
        protocols=PROTOCOLS,
        rebalance_timeout=TIMEOUTS,
        id_required=st.booleans(),
    )
    def join(self, data, instance, protocols, rebalance_timeout, id_required):
        self.made += 1
        new_id = f"member-{self.made}"
        reply = self.group.join(
            JoinRequest(
                member_id=data.draw(st.sampled_from(self.known)),
                new_id=new_id,
                group_instance_id=instance,
                session_timeout=10.0,
                rebalance_timeout=rebalance_timeout,
                protocol_type="consumer",
                protocols=protocols,
                id_required=id_required,
            ),
            self.now,
        )
        self.known.append(new_id)
        response = reply.result
        if response and response.error is ErrorCode.none:
            assert response.generation_id == self.group.generation_id
            assert response.protocol_name == self.group.protocol_name
            leads = response.leader == response.member_id
            assert bool(response.members) == leads

    @rule(data=st.data(), instance=INSTANCES, late=st.booleans())
    def sync(self, data, instance, late):
        assignments = {name: name.encode() for name in self.known}
        try:
            reply = self.group.sync(
                SyncRequest(
                    member_id=data.draw(st.sampled_from(self.known)),
                    group_instance_id=instance,
                    generation_id=self.group.generation_id - late,
                    assignments=assignments,
                ),
                self.now,
            )
        except GroupError:
            return
        assert not late
        assert (reply.result is not None) == (self.group.state is State.STABLE)

    @rule(data=st.data(), instance=INSTANCES)
    def beat(self, data, instance):
        name = data.draw(st.sampled_from(self.known))
        try:
            self.group.heartbeat(name, instance, self.group.generation_id, self.now)
        except GroupError as error:
            if error.code is not ErrorCode.rebalance_in_progress:
                return
        assert name in self.group.members

    @rule(data=st.data(), instance=INSTANCES)
    def leave(self, data, instance):
        name = data.draw(st.sampled_from(self.known))
        (code,) = self.group.leave([(name, instance)], self.now)
        if code is ErrorCode.none and name:
            assert name not in self.group.members

    @rule(seconds=st.sampled_from([0.0, 1.0, 4.0, 11.0, 400.0]))
    def wait(self, seconds):
        self.now += seconds
        self.group.advance(self.now)
        assert self.group.next_deadline > self.now

    @rule()
    def all_members_expire(self):
        self.now += 1000.0
        self.group.advance(self.now)
        assert State.EMPTY is self.group.state
        assert not len(self.group.members)
        assert not self.group.members.pending
        assert math.inf == self.group.next_deadline

    @invariant()
    def generations_only_increase(self):
        if hasattr(self, "group"):
            assert self.generation <= self.group.generation_id
            self.generation = self.group.generation_id

    @invariant()
    def state_follows_from_members(self):
        if not hasattr(self, "group"):
            return
        group = self.group
        members = list(group.members)
        waiting = [member for member in members if member.joining]
        if group.state is State.EMPTY:
            assert not members
        if group.state in (State.COMPLETING, State.STABLE):
            assert members
            assert not waiting
            assert group.members.leader in group.members
        if group.state is State.STABLE:
            assert not [member for member in members if member.syncing]
        if group.state is not State.COMPLETING:
            assert not [member for member in members if member.syncing]

    @invariant()
    def every_member_has_a_deadline(self):
        """A member without heartbeats expires."""
        if hasattr(self, "group") and len(self.group.members):
            assert self.group.next_deadline < math.inf


TestGroup = pytest.mark.slow("a search")(Group.TestCase)
