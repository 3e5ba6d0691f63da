"""The prefetch: how many records to request, and when."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.protocol.fetch.prefetch import (
    DEMAND_PERIOD,
    HORIZON,
    KEEP_UP_TIME,
    LEAD,
    OVERDUE_LIMIT,
    Prefetch,
)
from tests.protocol.hypothesis_profile import EXAMPLES
from tests.protocol.message_factories import P0, batch_bytes, partition_response


def prefetch_after(
    *, seconds: float, records: int = 100, allowance: int = 500
) -> Prefetch:
    """Return the prefetch of an application that processed records in `seconds`."""
    prefetch = Prefetch(500)
    prefetch.allowance = allowance
    prefetch.on_acquired(records)
    prefetch.on_delivered(records, now=0.0)
    prefetch.on_requested(now=seconds)
    return prefetch


def measure_batch(prefetch: Prefetch, *, records: int, size: int) -> None:
    """Measure a response with one batch."""
    prefetch.batches.measure(
        [partition_response(P0, records=batch_bytes(records, size // records))]
    )


def test_record_limit_is_half_of_the_partitions_windows():
    prefetch = Prefetch(10_000)
    prefetch.allowance = 10_000

    assert 1000 == prefetch.record_limit(1, partitions=1)
    assert 2000 == prefetch.record_limit(1, partitions=2)
    assert 1000 == prefetch.record_limit(1, partitions=0)


def test_large_record_limit_leaves_space_for_two_more_fetches():
    prefetch = Prefetch(10_000)
    prefetch.allowance = 10_000

    assert 2000 == prefetch.record_limit(1, partitions=3)
    assert 2000 == prefetch.record_limit(1, partitions=4)
    assert 3000 == prefetch.record_limit(1, partitions=6)
    assert 5000 == prefetch.record_limit(2, partitions=12)


def test_fetch_without_overlap_waits_for_the_previous_one_and_requests_the_allowance():
    prefetch = Prefetch(12_000)
    prefetch.overlaps = False
    prefetch.allowance = 12_000
    prefetch.on_requested(now=0.0)

    assert 0.0 == prefetch.next_due(now=0.0)
    assert 12_000 == prefetch.record_limit(1, partitions=6)
    assert 4000 == prefetch.record_limit(1, partitions=2)

    prefetch.on_acquired(6000)
    assert math.inf == prefetch.next_due(now=0.0)

    prefetch.on_delivered(6000, now=0.0)
    prefetch.on_requested(now=0.0)
    assert 0.0 == prefetch.next_due(now=0.0)


def test_first_fetch_requests_one_record():
    prefetch = Prefetch(500)
    prefetch.waiting_readers = 1

    assert 10.0 == prefetch.next_due(now=10.0)
    assert 1 == prefetch.record_limit(1, partitions=9)


def test_demand_of_a_reader_that_does_not_wait_lasts_for_a_while():
    prefetch = Prefetch(500)

    prefetch.on_requested(now=10.0)

    assert 10.1 == prefetch.next_due(now=10.1)
    assert math.inf == prefetch.next_due(now=10.0 + DEMAND_PERIOD)


def test_demand_ends_with_a_delivery():
    prefetch = Prefetch(500)
    prefetch.on_requested(now=10.0)

    prefetch.on_acquired(1)
    prefetch.on_delivered(1, now=10.1)

    assert math.inf == prefetch.next_due(now=10.2)


def test_allowance_doubles_with_each_request_of_a_fast_application():
    prefetch = Prefetch(500)
    allowances = []
    for turn in range(10):
        prefetch.on_acquired(prefetch.allowance)
        prefetch.on_delivered(prefetch.allowance, now=float(turn))
        prefetch.on_requested(now=turn + 1e-4)
        allowances.append(prefetch.allowance)

    assert [2, 4, 8, 16, 32, 64, 128, 256, 500, 500] == allowances


def test_allowance_is_the_number_of_records_processed_within_the_horizon():
    prefetch = prefetch_after(seconds=1.0, records=100)

    assert int(100 * HORIZON) == prefetch.allowance


def test_allowance_of_an_application_that_slows_down_shrinks_immediately():
    prefetch = prefetch_after(seconds=0.01, records=100)
    before = prefetch.allowance
    prefetch.on_acquired(100)
    prefetch.on_delivered(100, now=1.0)

    prefetch.on_requested(now=3.0)

    assert (500, int(50 * HORIZON)) == (before, prefetch.allowance)


def test_allowance_of_an_application_that_was_slow_grows_again():
    prefetch = prefetch_after(seconds=100.0, records=100)
    allowances = [prefetch.allowance]
    for turn in range(10):
        prefetch.on_acquired(100)
        prefetch.on_delivered(100, now=200.0 + turn)
        prefetch.on_requested(now=200.01 + turn)
        allowances.append(prefetch.allowance)

    assert 1 == allowances[0]
    assert sorted(allowances) == allowances
    assert 500 == allowances[-1]


def test_short_measurement_changes_the_rate_little():
    """With few records, the calls between them take most of the time."""
    prefetch = prefetch_after(seconds=0.001, records=500)
    prefetch.on_acquired(1)
    prefetch.on_delivered(1, now=9.0)
    prefetch.on_requested(now=9.0001)
    prefetch.on_acquired(500)

    assert 10.0 == prefetch.next_due(now=10.0)


def test_waiting_for_records_is_not_counted_as_work():
    prefetch = prefetch_after(seconds=0.1, records=100)
    allowance = prefetch.allowance

    prefetch.on_requested(now=60.0)

    assert allowance == prefetch.allowance


def test_application_keeps_up_if_it_processes_buffered_records_quickly():
    prefetch = prefetch_after(seconds=KEEP_UP_TIME, records=10)
    prefetch.on_acquired(4)
    prefetch.on_delivered(4, now=1.0)
    prefetch.on_acquired(6)
    kept_up = prefetch.keeps_up

    prefetch.on_acquired(1)

    assert (True, False) == (kept_up, prefetch.keeps_up)


def test_application_with_an_unknown_rate_does_not_keep_up():
    prefetch = Prefetch(500)
    prefetch.on_acquired(1)

    assert not prefetch.keeps_up


def test_prefetch_time_includes_buffered_records():
    prefetch = prefetch_after(seconds=1.0, records=100)
    prefetch.on_acquired(20)
    prefetch.on_delivered(10, now=10.0)

    assert 10.2 - LEAD == pytest.approx(prefetch.next_due(now=10.0))


def test_nothing_is_prefetched_for_a_late_application_until_it_requests_records():
    prefetch = prefetch_after(seconds=1.0, records=100)
    prefetch.on_acquired(20)
    prefetch.on_delivered(20, now=10.0)
    late = 10.2 + OVERDUE_LIMIT + 0.01

    due_before = prefetch.next_due(now=late)
    prefetch.on_requested(now=late)

    assert math.inf == due_before
    assert late == prefetch.next_due(now=late)


@pytest.mark.parametrize(
    ("allowance", "leaders", "share"),
    [(1, 1, 1), (1, 3, 1), (10, 3, 4), (9, 3, 3), (500, 0, 500)],
)
def test_leaders_share_the_allowance_with_at_least_one_record_each(
    allowance: int, leaders: int, share: int
):
    prefetch = Prefetch(500)
    prefetch.allowance = allowance

    assert share == prefetch.record_limit(leaders, partitions=9)


@EXAMPLES
@given(
    st.integers(1, 10_000),
    st.lists(st.tuples(st.integers(1, 3_000), st.floats(0, 100)), max_size=30),
)
def test_allowance_stays_within_its_bounds_and_at_most_doubles(
    max_records: int, turns: list[tuple[int, float]]
):
    prefetch = Prefetch(max_records)
    now = 0.0
    allowances = [prefetch.allowance]
    for records, seconds in turns:
        prefetch.on_acquired(records)
        prefetch.on_delivered(records, now)
        now += seconds
        prefetch.on_requested(now)
        allowances.append(prefetch.allowance)

    assert all(1 <= allowance <= max_records for allowance in allowances)
    for before, after in itertools.pairwise(allowances):
        assert after <= 2 * before


@pytest.mark.parametrize(
    ("record_size", "is_due"), [(40_000.0, True), (41_000.0, False)]
)
def test_large_records_are_fetched_ahead_up_to_two_responses(
    record_size: float, is_due: bool
):
    prefetch = Prefetch(500, max_bytes=1_000_000)
    prefetch.batches.record_size = record_size
    for now in (0.0, 0.01):
        prefetch.on_acquired(100)
        prefetch.on_delivered(100, now)
        prefetch.on_requested(now + 0.005)
    prefetch.allowance = 500
    prefetch.on_acquired(50)
    prefetch.on_delivered(1, now=0.02)

    assert is_due == (prefetch.next_due(now=0.02) < math.inf)
