"""How many records to request where producer batches are large.

A broker sends whole producer batches, also for a small record limit.
"""

import math

import pytest

from sharecons.protocol.fetch.prefetch import HORIZON, BatchSizes, Prefetch
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    batch_bytes,
    fetch_response,
    partition_response,
)

LOCK = 30.0
LARGE = 1000  # records of 1 kB in a batch of 1 MB


def measured(*payloads: bytes) -> BatchSizes:
    sizes = BatchSizes()
    for payload in payloads:
        sizes.measure([partition_response(P0, records=payload)])
    return sizes


class Handler:
    """An application that takes the same time for each record."""

    def __init__(
        self, seconds: float, *, batch_records: int = LARGE, max_records: int = 2000
    ) -> None:
        self.pace = Prefetch(max_records)
        self.now = 0.0
        self._seconds = seconds
        self._payload = batch_bytes(batch_records)
        self.asked: list[int] = []

    def work(self, turns: int, leaders: int = 1) -> list[int]:
        """Fetch, process all, and ask again; return what each fetch asked for."""
        for _ in range(turns):
            count = self.pace.record_limit(leaders, partitions=9)
            self.asked.append(count)
            self.pace.on_acquired(count)
            self.pace.measure([partition_response(P0, records=self._payload)], LOCK)
            self.pace.on_delivered(count, self.now)
            self.now += count * self._seconds
            self.pace.on_requested(self.now)
        return self.asked


@pytest.mark.parametrize(("seconds", "records"), [(0.1, 150), (1.0, 15), (5.0, 3)])
def test_slow_handler_requests_what_half_of_the_lock_allows_after_one_record(
    seconds: float, records: int
):
    asked = Handler(seconds).work(6)

    assert 1 == asked[0]
    assert asked[1:] == pytest.approx([records] * 5, abs=1)


def test_handler_slower_than_half_of_the_lock_requests_one_record():
    assert [1] * 4 == Handler(20.0).work(4)


def test_fast_handler_receives_whole_batches_from_the_third_fetch_on():
    handler = Handler(0.0001)
    whole = []
    for _ in range(4):
        whole.append(handler.pace.takes_whole_batches(leaders=1))
        handler.work(1)

    assert [False, False, True, True] == whole
    assert [1, 256, 1000, 1000] == [min(count, 1000) for count in handler.asked]


def test_one_record_foretells_no_more_than_256():
    handler = Handler(0.0001)

    handler.work(1)

    assert 256 == handler.pace.allowance


def test_whole_batches_fit_in_half_of_the_lock():
    handler = Handler(0.006)  # 2,500 records in half of the lock

    handler.work(3)

    assert handler.pace.takes_whole_batches(leaders=1)
    assert 1501 == pytest.approx(handler.pace.record_limit(1, partitions=9), abs=2)
    assert not handler.pace.takes_whole_batches(leaders=2), "each brings a batch"


def test_batch_larger_than_all_before_it_fits_in_half_of_the_lock():
    handler = Handler(0.01, batch_records=100)  # 1,500 records in half of the lock

    handler.work(5)

    assert not handler.pace.takes_whole_batches(leaders=1), "2,000 would not fit"


@pytest.mark.parametrize("acquire_all", [1, 10])
def test_batch_that_takes_longer_than_half_of_the_lock_is_never_taken_whole(
    acquire_all: int,
):
    handler = Handler(1 / 50, max_records=acquire_all)

    handler.work(5)

    assert acquire_all == handler.pace.allowance, "it is at full speed"
    assert not handler.pace.takes_whole_batches(leaders=1)


def test_first_fetch_of_a_consumer_of_single_records_has_an_exact_limit():
    assert not Prefetch(1).takes_whole_batches(leaders=1)


def test_set_allowance_is_exact_and_for_one_request():
    pace = Prefetch(2000)
    pace.lock_duration = 30.0
    pace.set_allowance(5)
    assert not pace.takes_whole_batches(leaders=1)
    assert 5 == pace.record_limit(leaders=1, partitions=1)
    pace.on_requested(0.0)
    assert 0.0 == pace.next_due(0.0)
    pace.on_acquired(5)

    for now in (0.0, 0.001, 1.0):
        assert math.inf == pace.next_due(now), "nothing is fetched ahead"
    pace.set_max_records(2000)
    pace.on_delivered(5, 1.0)
    pace.on_requested(1.001)
    assert 10 == pace.allowance, "it grows again"


def test_nothing_is_fetched_while_suspended():
    pace = Prefetch(2000)
    pace.on_requested(0.0)
    pace.suspended = True

    assert math.inf == pace.next_due(0.0)


@pytest.mark.parametrize("batch_records", [1, 16, 30])
def test_small_batches_change_nothing(batch_records: int):
    small, unknown = Handler(0.1, batch_records=batch_records), Prefetch(2000)
    asked = small.work(8)
    for count in asked:
        unknown.on_acquired(count)
        unknown.on_delivered(count, now=0.0)
        unknown.on_requested(now=count * 0.1)

    assert int(10 * HORIZON) == unknown.allowance == small.pace.allowance


def test_batches_that_a_fetch_takes_whole_anyway_change_nothing():
    handler = Handler(0.001, batch_records=100)  # 250 records in the horizon

    assert [1, 2, 4] != handler.work(3), "until then they are too many"
    handler.work(5)

    assert pytest.approx(1000 * HORIZON, abs=1) == handler.pace.allowance


def test_max_records_bounds_what_half_of_the_lock_allows():
    assert [1, 7, 7] == Handler(0.1, max_records=7).work(3)


def test_without_a_known_lock_duration_only_the_horizon_counts():
    pace = Prefetch(2000)
    pace.batches.measure([partition_response(P0, records=batch_bytes(LARGE))])
    pace.on_acquired(1)
    pace.on_delivered(1, now=0.0)

    pace.on_requested(now=0.1)

    assert 2 == pace.allowance


def test_handler_that_slows_down_in_the_middle_of_a_lease_is_measured_by_its_work():
    handler = Handler(0.1)
    handler.work(2)
    pace = handler.pace
    pace.on_acquired(150)
    pace.on_delivered(150, now=100.0)

    pace.on_requested(now=130.0, expired=120)  # their locks have ended

    assert 15 == pace.allowance


def test_sizes_are_those_of_the_batch_in_which_most_bytes_lie():
    sizes = measured(batch_bytes(1) * 3 + batch_bytes(100))

    assert 97 == pytest.approx(sizes.records, abs=2)
    assert 97_000 == pytest.approx(sizes.size, abs=2000)
    assert 1000 == pytest.approx(sizes.record_size)


def test_sizes_follow_what_the_last_answers_held():
    sizes = measured(batch_bytes(1000), *[batch_bytes(10)] * 20)

    assert 10 == pytest.approx(sizes.records, abs=1)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\0" * 7,
        b"\0" * 61,
        b"\xff" * 200,
        batch_bytes(5)[:60],
        batch_bytes(0, 0)[:61],
    ],
)
def test_bytes_that_hold_no_batch_are_not_measured(payload: bytes):
    sizes = measured(payload)

    assert (0, 0, 0) == (sizes.records, sizes.size, sizes.record_size)


def test_batch_that_is_cut_off_is_measured_by_its_header():
    sizes = measured(batch_bytes(1000)[:5000])

    assert (1000, 1_000_000) == (sizes.records, sizes.size)


def test_only_the_first_batches_of_an_answer_are_measured():
    many = b"".join(batch_bytes(1, 100) for _ in range(200)) + batch_bytes(5000)

    assert 1 == measured(many).records


def test_leader_requests_half_of_the_lock_from_the_second_fetch_on():
    harness = LeaderHarness()
    harness.open_session(partition_response(P0, (0, 0), records=batch_bytes(LARGE)))

    harness.now = 0.1
    harness.prefetch.on_requested(harness.now)
    harness.prefetch.waiting_readers = 1
    request = harness.next_fetch()

    assert (150, True) == (request.max_records, request.record_limit)


def test_leader_uses_the_lock_duration_of_the_group():
    harness = LeaderHarness()
    harness.respond(
        harness.next_fetch(),
        fetch_response(
            partition_response(P0, (0, 0), records=batch_bytes(LARGE)), lock_timeout=4.0
        ),
    )
    harness.take_leases()

    harness.now = 0.1
    harness.prefetch.on_requested(harness.now)
    request = harness.next_fetch()

    assert 20 == request.max_records
