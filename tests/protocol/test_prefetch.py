import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sharecons.protocol.fetch.prefetch import (
    DEMAND_PERIOD,
    HORIZON,
    KEEP_UP_TIME,
    LEAD,
    OVERDUE_LIMIT,
    Prefetch,
)
from tests.protocol.hypothesis_profile import EXAMPLES, MACHINE
from tests.protocol.message_factories import P0, batch_bytes, partition_response


def working(*, seconds: float, records: int = 100, allowance: int = 500) -> Prefetch:
    """A pace of an application that worked so many records in so many seconds."""
    pace = Prefetch(500)
    pace.allowance = allowance
    pace.on_acquired(records)
    pace.on_delivered(records, now=0.0)
    pace.on_requested(now=seconds)
    return pace


def weigh(pace: Prefetch, *, records: int, size: int) -> None:
    """Note a response of one batch."""
    pace.batches.measure(
        [partition_response(P0, records=batch_bytes(records, size // records))]
    )


def test_nothing_is_fetched_before_the_first_request():
    assert math.inf == Prefetch(500).next_due(now=10.0)


def test_a_fetch_leaves_half_of_its_partitions_windows_to_the_next():
    pace = Prefetch(10_000)
    pace.allowance = 10_000

    assert 1000 == pace.record_limit(1, partitions=1)
    assert 2000 == pace.record_limit(1, partitions=2)
    assert 1000 == pace.record_limit(1, partitions=0)


def test_a_fetch_of_many_records_leaves_room_for_two_more():
    pace = Prefetch(10_000)
    pace.allowance = 10_000

    assert 2000 == pace.record_limit(1, partitions=3)
    assert 2000 == pace.record_limit(1, partitions=4)
    assert 3000 == pace.record_limit(1, partitions=6)
    assert 5000 == pace.record_limit(2, partitions=12)


def test_without_overlap_a_fetch_waits_for_the_one_before_and_asks_for_all():
    pace = Prefetch(12_000)
    pace.overlaps = False
    pace.allowance = 12_000
    pace.on_requested(now=0.0)

    assert 0.0 == pace.next_due(now=0.0)
    assert 12_000 == pace.record_limit(1, partitions=6)
    assert 4000 == pace.record_limit(1, partitions=2)

    pace.on_acquired(6000)
    assert math.inf == pace.next_due(now=0.0)

    pace.on_delivered(6000, now=0.0)
    pace.on_requested(now=0.0)
    assert 0.0 == pace.next_due(now=0.0)


def test_many_partitions_of_small_records_share_more_bytes():
    pace = Prefetch(2000)
    weigh(pace, records=1000, size=110_000)

    assert 1_000_000 == pace.byte_limit(2000, partitions=1, max_bytes=1_000_000)
    assert 1_000_000 == pace.byte_limit(2000, partitions=3, max_bytes=1_000_000)
    assert 6 * 220_000 == pace.byte_limit(2000, partitions=6, max_bytes=1_000_000)
    assert 4_000_000 == pace.byte_limit(2000, partitions=500, max_bytes=1_000_000)


def test_records_that_would_not_all_fit_get_no_more_bytes():
    pace = Prefetch(2000)
    weigh(pace, records=10, size=10_000)

    assert 1_000_000 == pace.byte_limit(2000, partitions=500, max_bytes=1_000_000)


def test_records_of_unknown_size_get_no_more_bytes():
    assert 1_000_000 == Prefetch(2000).byte_limit(
        2000, partitions=9, max_bytes=1_000_000
    )


def test_the_first_fetch_asks_for_one_record():
    pace = Prefetch(500)
    pace.waiting_readers = 1

    assert 10.0 == pace.next_due(now=10.0)
    assert 1 == pace.record_limit(1, partitions=9)


def test_an_asking_that_did_not_wait_is_remembered_for_a_while():
    pace = Prefetch(500)

    pace.on_requested(now=10.0)

    assert 10.1 == pace.next_due(now=10.1)
    assert math.inf == pace.next_due(now=10.0 + DEMAND_PERIOD)


def test_an_asking_is_forgotten_once_it_is_served():
    pace = Prefetch(500)
    pace.on_requested(now=10.0)

    pace.on_acquired(1)
    pace.on_delivered(1, now=10.1)

    assert math.inf == pace.next_due(now=10.2)


def test_the_allowance_doubles_each_time_that_a_fast_application_asks_again():
    pace = Prefetch(500)
    allowances = []
    for turn in range(10):
        pace.on_acquired(pace.allowance)
        pace.on_delivered(pace.allowance, now=float(turn))
        pace.on_requested(now=turn + 1e-4)
        allowances.append(pace.allowance)

    assert [2, 4, 8, 16, 32, 64, 128, 256, 500, 500] == allowances


def test_an_application_that_takes_a_second_for_each_record_never_holds_a_second_one():
    pace = Prefetch(500)
    for turn in range(10):
        pace.on_acquired(1)
        pace.on_delivered(1, now=float(turn))
        pace.on_requested(now=turn + 1.0)

    assert 1 == pace.allowance


def test_the_allowance_is_what_the_application_works_in_the_horizon():
    pace = working(seconds=1.0, records=100)

    assert int(100 * HORIZON) == pace.allowance


def test_an_application_that_slows_down_is_allowed_no_more_than_it_works_now():
    pace = working(seconds=0.01, records=100)
    before = pace.allowance
    pace.on_acquired(100)
    pace.on_delivered(100, now=1.0)

    pace.on_requested(now=3.0)

    assert (500, int(50 * HORIZON)) == (before, pace.allowance)


def test_an_application_that_was_slow_once_is_trusted_again_by_and_by():
    pace = working(seconds=100.0, records=100)
    allowances = [pace.allowance]
    for turn in range(10):
        pace.on_acquired(100)
        pace.on_delivered(100, now=200.0 + turn)
        pace.on_requested(now=200.01 + turn)
        allowances.append(pace.allowance)

    assert 1 == allowances[0]
    assert sorted(allowances) == allowances
    assert 500 == allowances[-1]


def test_a_short_measurement_changes_the_rate_little():
    """A lease of few records, in which the asking itself is what takes time."""
    pace = working(seconds=0.001, records=500)
    pace.on_acquired(1)
    pace.on_delivered(1, now=9.0)
    pace.on_requested(now=9.0001)
    pace.on_acquired(500)

    assert 10.0 == pace.next_due(now=10.0)


def test_many_short_measurements_change_the_rate():
    pace = working(seconds=0.001, records=500)
    for turn in range(1, 100):
        pace.on_acquired(1)
        pace.on_delivered(1, now=float(turn))
        pace.on_requested(now=turn + 0.001)
    pace.on_acquired(500)

    assert math.inf == pace.next_due(now=100.0), "they take half a second"


def test_waiting_for_records_is_not_counted_as_work():
    pace = working(seconds=0.1, records=100)
    allowance = pace.allowance

    pace.on_requested(now=60.0)

    assert allowance == pace.allowance


def test_an_application_that_asks_in_the_same_instant_is_fast_not_infinitely_so():
    pace = working(seconds=0.0, records=1, allowance=1)

    assert 2 == pace.allowance


def test_an_application_keeps_up_that_works_what_came_in_moments():
    pace = working(seconds=KEEP_UP_TIME, records=10)
    pace.on_acquired(4)
    pace.on_delivered(4, now=1.0)
    pace.on_acquired(6)
    kept_up = pace.keeps_up

    pace.on_acquired(1)

    assert (True, False) == (kept_up, pace.keeps_up)


def test_an_application_of_unknown_pace_does_not_keep_up():
    pace = Prefetch(500)
    pace.on_acquired(1)

    assert not pace.keeps_up


def test_without_overlap_keeps_up_is_false():
    pace = working(seconds=KEEP_UP_TIME, records=10)
    pace.overlaps = False
    pace.on_acquired(1)

    assert not pace.keeps_up


def test_nothing_is_fetched_while_the_buffer_holds_the_allowance():
    pace = Prefetch(500)
    pace.waiting_readers = 1

    pace.on_acquired(1)

    assert math.inf == pace.next_due(now=0.0)


def test_what_is_dropped_leaves_the_buffer():
    pace = Prefetch(500)
    pace.waiting_readers = 1
    pace.on_acquired(1)

    pace.on_dropped(1)

    assert 0 == pace.buffered
    assert 3.0 == pace.next_due(now=3.0)


def test_fetching_ahead_begins_shortly_before_the_work_is_done():
    pace = working(seconds=1.0, records=100)
    pace.on_acquired(20)
    pace.on_delivered(20, now=10.0)

    assert 10.2 - LEAD == pytest.approx(pace.next_due(now=10.0))


def test_what_is_buffered_is_work_too():
    pace = working(seconds=1.0, records=100)
    pace.on_acquired(20)
    pace.on_delivered(10, now=10.0)

    assert 10.2 - LEAD == pytest.approx(pace.next_due(now=10.0))


def test_an_application_slower_than_foretold_is_given_no_more_until_it_asks():
    pace = working(seconds=1.0, records=100)
    pace.on_acquired(20)
    pace.on_delivered(20, now=10.0)
    late = 10.2 + OVERDUE_LIMIT + 0.01

    due_before = pace.next_due(now=late)
    pace.on_requested(now=late)

    assert math.inf == due_before
    assert late == pace.next_due(now=late)


@pytest.mark.parametrize(
    ("allowance", "leaders", "share"),
    [(1, 1, 1), (1, 3, 1), (10, 3, 4), (9, 3, 3), (500, 0, 500)],
)
def test_leaders_share_the_allowance_and_each_is_asked_for_one_at_least(
    allowance: int, leaders: int, share: int
):
    pace = Prefetch(500)
    pace.allowance = allowance

    assert share == pace.record_limit(leaders, partitions=9)


def test_full_speed_is_reached_when_the_allowance_is_all_that_the_user_allows():
    pace = Prefetch(2)

    slow = pace.at_full_speed
    pace.allowance = 2

    assert (False, True) == (slow, pace.at_full_speed)


@EXAMPLES
@given(
    st.integers(1, 10_000),
    st.lists(st.tuples(st.integers(1, 3_000), st.floats(0, 100)), max_size=30),
)
def test_the_allowance_never_leaves_its_bounds_nor_more_than_doubles(
    max_records: int, turns: list[tuple[int, float]]
):
    pace = Prefetch(max_records)
    now = 0.0
    allowances = [pace.allowance]
    for records, seconds in turns:
        pace.on_acquired(records)
        pace.on_delivered(records, now)
        now += seconds
        pace.on_requested(now)
        allowances.append(pace.allowance)

    assert all(1 <= allowance <= max_records for allowance in allowances)
    for before, after in itertools.pairwise(allowances):
        assert after <= 2 * before


class PaceOfAnApplication(RuleBasedStateMachine):
    """An asker as `deliveries` has it: it waits only when nothing is buffered."""

    def __init__(self) -> None:
        super().__init__()
        self.pace = Prefetch(100)
        self.now = 0.0
        self.ready: list[int] = []
        self.in_hand = False

    @rule(seconds=st.sampled_from([0.0, 0.001, 0.05, 0.3, 2.0, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def ask(self) -> None:
        if not self.pace.waiting_readers:
            if self.in_hand:
                self.in_hand = False
                self.pace.on_requested(self.now)
            self.serve()
            if not self.in_hand:
                self.pace.on_requested(self.now)
                self.pace.waiting_readers = 1

    @rule()
    def give_up(self) -> None:
        self.pace.waiting_readers = 0

    @precondition(lambda self: self.pace.next_due(self.now) <= self.now)
    @rule(excess=st.integers(0, 50), empty=st.booleans())
    def fetch(self, excess: int, empty: bool) -> None:
        if not empty:
            count = self.pace.record_limit(1, partitions=9) + excess
            self.ready.append(count)
            self.pace.on_acquired(count)
            if self.pace.waiting_readers:
                self.serve()

    @rule()
    def lose_what_is_ready(self) -> None:
        for count in self.ready:
            self.pace.on_dropped(count)
        self.ready.clear()

    def serve(self) -> None:
        if self.ready:
            self.pace.waiting_readers = 0
            self.in_hand = True
            self.pace.on_delivered(self.ready.pop(0), self.now)

    @invariant()
    def the_buffer_is_counted_rightly(self) -> None:
        assert sum(self.ready) == self.pace.buffered

    @invariant()
    def whoever_waits_is_fetched_for(self) -> None:
        if self.pace.waiting_readers:
            assert self.now == self.pace.next_due(self.now)

    @invariant()
    def a_due_time_to_come_comes_true(self) -> None:
        due = self.pace.next_due(self.now)
        if self.now < due < math.inf:
            assert self.pace.next_due(due) <= due


PaceOfAnApplication.TestCase.settings = MACHINE
TestPaceOfAnApplication = PaceOfAnApplication.TestCase
