"""A share partition against a model, under random operations."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from sharecons.testing.broker.share.acquire import AcquireRequest
from sharecons.testing.broker.share.coordinator_state import CoordinatorState
from sharecons.testing.broker.share.deliveries import (
    AcknowledgeError,
    AcknowledgementBatch,
    GroupSettings,
)
from sharecons.testing.broker.share.partition import SharePartition
from tests.broker.model_share_partition import Model
from tests.broker.offset_log import Log

members = st.sampled_from(["ann", "bob", "cy"])


class DeliveryQueue(RuleBasedStateMachine):
    @initialize(
        limit=st.integers(2, 6),
        locks=st.sampled_from([10, 40]),
        start=st.integers(0, 3),
    )
    def open(self, limit, locks, start):
        self.now = 0.0
        self.settings = GroupSettings(
            lock_duration=10.0, delivery_limit=limit, record_locks=locks
        )
        self.log = Log(start)
        self.model = Model(limit, locks, start=start)
        self.state = CoordinatorState()
        self.partition = SharePartition(self.state, start)

    @rule(sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4))
    def produce(self, sizes):
        for size in sizes:
            self.log.append(size)

    @rule(
        member=members,
        max_records=st.integers(1, 20),
        record_limit=st.booleans(),
        batch_size=st.integers(1, 20),
        batches=st.integers(1, 6),
    )
    def fetch(self, member, max_records, record_limit, batch_size, batches):
        if not self.partition.can_acquire(self.settings):
            return
        request = AcquireRequest(
            member=member,
            max_records=max_records,
            record_limit=record_limit,
            batch_size=batch_size,
        )
        offset = self.partition.next_fetch_offset()
        read = self.log.read(offset, batches)
        acquired = self.partition.acquire(
            request, offset, read, self.settings, self.now
        )
        if record_limit:
            assert sum(last - first + 1 for first, last, _ in acquired) <= max_records
        left = [
            offset
            for offset, (_, count) in flat(self.partition.states()).items()
            if not count
        ]
        self.model.acquired(member, acquired, self.now, left)

    @rule(
        member=members,
        data=st.data(),
        is_honest=st.booleans(),
    )
    def acknowledge(self, member, data, is_honest):
        held = sorted(self.model.held_by(member))
        if is_honest and not held:
            return
        batches = data.draw(acknowledgements(held) if is_honest else invalid)
        before = self.partition.states()
        try:
            changes = self.partition.acknowledge(
                member, batches, self.settings, self.now
            )
        except AcknowledgeError:
            assert not self.model.can_acknowledge(member, batches)
            assert flat(before) == flat(self.partition.states())
        else:
            assert self.model.can_acknowledge(member, batches)
            assert flat(before) == flat(self.partition.states())
            self.partition.apply(changes)
            self.model.acknowledged(batches, self.now)

    @rule(member=members)
    def close(self, member):
        self.partition.release(member, self.settings)
        self.model.released(member)

    @rule(seconds=st.sampled_from([1.0, 4.0, 10.0]))
    def wait(self, seconds):
        self.now += seconds
        self.partition.advance(self.settings, self.now)
        self.model.passed(self.now)
        assert self.partition.next_deadline() > self.now

    @precondition(lambda self: self.log.end > self.log.start)
    @rule()
    def move_leader(self):
        self.model.leader_moved()
        start = self.state.start_offset
        self.partition = SharePartition(
            self.state, self.log.start if start < 0 else start
        )

    @invariant()
    def acquired_records_equal_the_model(self):
        if not hasattr(self, "partition"):
            return
        for member in ("ann", "bob", "cy"):
            held = {
                offset: count
                for first, last, count in self.partition.acquired_by(member)
                for offset in range(first, last + 1)
            }
            assert self.model.held_by(member) == held

    @invariant()
    def start_offset_equals_the_model(self):
        if not hasattr(self, "partition"):
            return
        assert self.model.start == self.partition.start_offset
        if self.state.batches:
            assert self.model.written_start == self.state.start_offset

    @invariant()
    def coordinator_state_equals_the_model(self):
        if not hasattr(self, "partition"):
            return
        known = {
            offset: (count, state)
            for first, last, state, count in self.state.batches
            for offset in range(first, last + 1)
        }
        written = {
            offset: each
            for offset, each in self.model.written.items()
            if offset >= self.state.start_offset
        }
        assert written == known


kinds = st.sampled_from([0, 1, 2, 3, 4])


@st.composite
def acknowledgements(draw, held):
    """Choose acknowledgements in order, by ranges or one by one."""
    chosen = [offset for offset in held if draw(st.booleans())] or held[:1]
    ranges = []
    for offset in chosen:
        if ranges and ranges[-1][1] == offset - 1 and draw(st.booleans()):
            ranges[-1][1] = offset
        else:
            ranges.append([offset, offset])
    return [
        AcknowledgementBatch(first, last, draw(types(last - first + 1)))
        for first, last in ranges
    ]


def types(length):
    each = st.lists(kinds, min_size=length, max_size=length).map(tuple)
    return st.one_of(kinds.map(lambda kind: (kind,)), each)


invalid = st.builds(
    lambda first, length, kind: [AcknowledgementBatch(first, first + length, (kind,))],
    st.integers(0, 60),
    st.integers(0, 10),
    st.sampled_from([0, 1, 2, 3]),
)


def flat(states):
    """Return the states by offset."""
    return {
        offset: (state, count)
        for first, last, state, count in states
        for offset in range(first, last + 1)
    }


TestDeliveries = DeliveryQueue.TestCase
TestDeliveries.settings = settings(stateful_step_count=40, deadline=None)
