"""The queue of a handler: which record is processed next, and how many are taken."""

import math
import time
from collections import defaultdict

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sharecons.worker.machine.handler_queue import HandlerQueue
from sharecons.worker.machine.item import ItemState, WorkItem
from sharecons.worker.machine.settings import DEFAULTS


def queue(
    *names: str, concurrency: int = 2, max_bytes: int = 1000, max_held: int = 100
) -> tuple[HandlerQueue, list[WorkItem]]:
    """Return a queue with records; the part of a name before ":" is its key."""
    found = HandlerQueue(
        DEFAULTS, concurrency=concurrency, max_bytes=max_bytes, max_held=max_held
    )
    items = []
    for name in names:
        key, _, _ = name.rpartition(":")
        items.append(WorkItem(name, 10, lane=key.encode() or None))
        found.add(items[-1])
    return found, items


def start_next(found: HandlerQueue, now: float) -> WorkItem | None:
    """Start a call; the calls of records that no longer run have ended."""
    found.calls = found.running
    call = found.next_call(now, False)
    if call is None:
        return None
    (item,) = call.items
    return item


def started(found: HandlerQueue, now: float = 0.0) -> list[str]:
    names = []
    while (item := start_next(found, now)) is not None:
        names.append(item.record)
    return names


def test_records_start_in_order_up_to_the_concurrency() -> None:
    found, items = queue("a", "b", "c")

    assert ["a", "b"] == started(found)
    assert 2 == found.running
    found.remove(items[0])
    assert ["c"] == started(found)


def test_capacity_is_the_number_of_free_slots() -> None:
    found, items = queue("a", concurrency=3)
    assert 2 == found.capacity(0.0)
    started(found)
    assert 2 == found.capacity(0.0)
    found.start_copy(items[0])

    assert 3 == found.capacity(0.0), "a record that is copied uses no slot"


def test_waiting_records_use_no_slot_and_start_first_when_due() -> None:
    found, items = queue("a", "b", concurrency=1)
    started(found)
    found.retry(items[0], due=5.0)

    assert ["b"] == started(found, 1.0)
    assert math.inf == found.next_due(), "its only call runs"
    found.add(WorkItem("c", 10))
    found.remove(items[1])
    found.calls = found.running
    assert 5.0 == found.next_due()
    assert 0 == found.capacity(5.0), "the due one needs the slot"
    assert ["a"] == started(found, 5.0)
    assert 2 == items[0].attempt
    assert math.inf == found.next_due()


def test_due_records_start_in_the_order_of_their_times() -> None:
    found, items = queue("a", "b", "c", concurrency=3)
    started(found)
    for item, due in zip(items, (9.0, 7.0, 7.0), strict=True):
        found.retry(item, due)

    assert ["b", "c"] == started(found, 8.0)
    assert ["a"] == started(found, 9.0)


def test_lane_runs_one_record_at_a_time_through_all_attempts() -> None:
    found, items = queue("k:1", "k:2", "j:1", "none", concurrency=9)
    assert ["k:1", "j:1", "none"] == started(found)
    assert ItemState.BLOCKED is items[1].state
    found.retry(items[0], due=3.0)
    assert [] == started(found, 1.0)
    assert ["k:1"] == started(found, 3.0)
    found.start_copy(items[0])
    assert [] == started(found, 4.0), "it is not done yet"
    found.remove(items[0])

    assert ["k:2"] == started(found, 4.0)


def test_lane_behind_a_record_has_the_later_records_of_its_key() -> None:
    found, items = queue("k:1", "k:2", "j:1", "k:3", "none")

    assert [items[3], items[1]] == found.lane_behind(items[0])
    assert [items[3]] == found.lane_behind(items[1])
    assert [] == found.lane_behind(items[2])
    assert [] == found.lane_behind(items[4])


def test_blocked_records_let_others_be_taken_up_to_their_own_limit() -> None:
    found = HandlerQueue(
        DEFAULTS, concurrency=2, max_bytes=1000, max_held=2, max_blocked=3
    )
    items = [WorkItem(f"k:{number}", 10, lane=b"k") for number in range(3)]
    for item in items:
        found.add(item)
    started(found)
    assert 2 == found.blocked_count
    assert 1 == found.capacity(0.0)
    found.add(WorkItem("k:4", 10, lane=b"k"))

    assert found.is_full
    assert 0 == found.capacity(0.0), "the maximum is blocked"
    assert (items[0], 3) == found.first_of_longest_lane()
    found.remove(items[0])
    assert 2 == found.blocked_count
    assert 1 == found.capacity(0.0)
    for item in found.held:
        found.remove(item)
    assert 0 == found.blocked_count
    assert found.first_of_longest_lane() is None


def test_copies_that_are_not_due_are_counted_until_their_first_call() -> None:
    found, _ = queue("a")
    copy = WorkItem("copy", 10, due=5.0)
    found.add(copy)
    assert 10 == found.early_bytes

    found.remove(found.held[0])
    assert ["copy"] == started(found, now=5.0)
    assert 0 == found.early_bytes
    found.retry(copy, 9.0)
    assert 0 == found.early_bytes


def test_bytes_limit_what_is_taken() -> None:
    found, items = queue("a", "b", max_bytes=20, concurrency=9)
    assert 0 == found.capacity(0.0)
    found.remove(items[0])

    assert 8 == found.capacity(0.0)
    assert 10 == found.held_bytes


def test_lost_records_free_slots_and_lanes() -> None:
    found, items = queue("k:1", "k:2", "k:3", "a", concurrency=2)
    started(found)

    found.remove(items[1])
    found.remove(items[0])
    found.remove(items[0])

    assert ["k:3"] == started(found)
    assert (items[2], items[3]) == found.held


def test_waiting_records_count_for_the_bytes_only() -> None:
    found, items = queue("a", "b", concurrency=2, max_held=2)
    started(found)
    assert 0 == found.capacity(0.0)
    for item in items:
        found.retry(item, due=5.0)

    assert 2 == found.capacity(1.0)
    assert 2 == found.waiting_count == found.held_count
    assert {*items} == {*found.waiting}
    assert 20 == found.held_bytes


def test_record_with_a_due_time_waits_from_the_start() -> None:
    found, _ = queue("a")
    found.add(WorkItem("later", 10, due=5.0))

    assert ["a"] == started(found, 4.0)
    assert 5.0 == found.next_due()
    assert ["later"] == started(found, 5.0)


def test_wait_that_ends_early_leaves_the_record_copying() -> None:
    found, items = queue("k:1", "k:2")
    started(found)
    found.retry(items[0], due=5.0)

    found.start_copy(items[0])

    assert ItemState.COPYING is items[0].state
    assert math.inf == found.next_due()
    assert [] == started(found, 9.0)
    found.remove(items[0])
    assert ["k:2"] == started(found, 9.0)


class QueueMachine(RuleBasedStateMachine):
    """Random use, compared with a plain list of running items and one list per lane."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.queue = HandlerQueue(DEFAULTS, concurrency=3, max_bytes=300, max_held=25)
        self.items: list[WorkItem] = []
        self.running: list[WorkItem] = []
        self.open: dict[bytes, list[WorkItem]] = defaultdict(list)

    @rule(lane=st.sampled_from([None, b"a", b"b"]))
    def add(self, lane: bytes | None) -> None:
        if self.queue.capacity(self.now):
            item = WorkItem(len(self.items), 10, lane=lane)
            self.items.append(item)
            if lane is not None:
                self.open[lane].append(item)
            self.queue.add(item)
            # Records that become due later can exceed the limit.
            assert len(self.queue.held) - self.queue.waiting_count <= 25

    @rule()
    def start(self) -> None:
        item = start_next(self.queue, self.now)
        if item is not None:
            assert item not in self.running
            assert item.due <= self.now
            if item.lane is not None:
                assert self.open[item.lane][0] is item
            self.running.append(item)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), delay=st.sampled_from([0.0, 1.0, 9.0]))
    def retry(self, data, delay: float) -> None:
        item = data.draw(st.sampled_from(self.running))
        self.running.remove(item)
        self.queue.retry(item, self.now + delay)

    @rule(delay=st.sampled_from([0.0, 1.0, 9.0]))
    def add_waiting(self, delay: float) -> None:
        item = WorkItem(len(self.items), 10, due=self.now + delay)
        self.items.append(item)
        self.queue.add(item)

    @precondition(lambda self: self.queue.waiting)
    @rule(data=st.data())
    def end_wait(self, data) -> None:
        self.queue.start_copy(data.draw(st.sampled_from(self.queue.waiting)))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def close(self, data) -> None:
        item = data.draw(st.sampled_from(self.running))
        self.running.remove(item)
        self.queue.start_copy(item)

    @precondition(lambda self: self.queue.held)
    @rule(data=st.data())
    def remove(self, data) -> None:
        item = data.draw(st.sampled_from(self.queue.held))
        if item in self.running:
            self.running.remove(item)
        if item.lane is not None:
            self.open[item.lane].remove(item)
        self.queue.remove(item)

    @rule(seconds=st.sampled_from([0.5, 2.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def counts_agree(self) -> None:
        assert len(self.running) == self.queue.running <= 3
        held = self.queue.held
        assert 10 * len(held) == self.queue.held_bytes
        states = [item.state for item in held]
        assert states.count(ItemState.WAITING) == self.queue.waiting_count
        assert all(item.state is not ItemState.DONE for item in held)
        quiet = set(states) <= {ItemState.WAITING, ItemState.BLOCKED}
        assert quiet == (self.queue.next_ack() > -math.inf)

    def teardown(self) -> None:
        """Finish everything: no record is forgotten."""
        for _ in range(1000):
            if not self.queue.held_count:
                break
            item = start_next(self.queue, self.now)
            for each in [item] if item is not None else self.running[:1]:
                self.queue.remove(each)
            self.running = self.running[1:] if item is None else self.running
            for each in self.queue.held:
                if each.state is ItemState.COPYING:
                    self.queue.remove(each)
            self.now += 1.0
        assert not self.queue.held_count


QueueMachine.TestCase.settings = settings(stateful_step_count=50)
TestQueue = pytest.mark.slow("a search")(QueueMachine.TestCase)


@given(st.lists(st.floats(0.0, 100.0), max_size=30))
def test_every_waiting_record_becomes_due(delays: list[float]) -> None:
    found, items = queue(*(f"r{n}" for n in range(len(delays))), concurrency=100)
    started(found)
    for item, delay in zip(items, delays, strict=True):
        found.retry(item, delay)
    order = []
    while (due := found.next_due()) < math.inf:
        order += started(found, due)

    assert [
        items[n].record for n in sorted(range(len(delays)), key=delays.__getitem__)
    ] == order


MANY = 20_000


@pytest.mark.parametrize("kind", ["waiting", "ready", "of one key"])
def test_many_records_leave_in_linear_time(kind: str) -> None:
    """In quadratic time, this takes more than ten seconds, and locks are lost."""
    found = HandlerQueue(DEFAULTS, concurrency=MANY, max_bytes=10 * MANY, max_held=MANY)
    lane = b"k" if kind == "of one key" else None
    due = 5.0 if kind == "waiting" else -math.inf
    items = [WorkItem(number, 1, lane=lane, due=due) for number in range(MANY)]
    for item in items:
        found.add(item)
    started = time.perf_counter()

    for item in reversed(items):
        assert [] == found.lane_behind(item)
        found.start_copy(item)
        found.remove(item)

    assert time.perf_counter() - started < 2.0
    assert not found.held_count
    assert math.inf == found.next_due()
    assert start_next(found, 9.0) is None
