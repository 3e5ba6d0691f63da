"""The demands of a member's users, and the fetches that follow from them."""

import math

import pytest

from sharecons.protocol.fetch.demand import FetchDemand
from sharecons.protocol.fetch.prefetch import Prefetch

MAX_RECORDS = 500
LOCK = 30.0


class Bench:
    """A demand, its prefetch control, and a count of wakes."""

    def __init__(self) -> None:
        self.prefetch = Prefetch(MAX_RECORDS)
        self.wakes = 0
        self.demand = FetchDemand(self.prefetch, MAX_RECORDS, self._wake)

    def _wake(self) -> None:
        self.wakes += 1

    def process(self, count: int, seconds: float, now: float = 0.0) -> float:
        """Deliver records; return the time at which they are processed."""
        self.prefetch.on_acquired(count)
        self.demand.on_delivered(count, now)
        self.demand.on_processed(now + seconds)
        return now + seconds

    def due(self, now: float) -> float:
        return self.prefetch.next_due(now)

    def limit(self) -> int:
        return self.prefetch.record_limit(leaders=1, partitions=1)


def test_records_are_fetched_ahead_at_first() -> None:
    bench = Bench()
    now = bench.process(1, 0.001)
    bench.prefetch.on_acquired(2)
    bench.demand.on_delivered(1, now)

    assert bench.due(now + 0.0005) < math.inf


def test_demand_up_to_a_number_is_due_once_it_is_requested() -> None:
    bench = Bench()
    bench.demand.up_to(7)
    assert bench.due(0.0) == math.inf

    bench.demand.begin_wait(0.0)
    assert bench.due(0.0) == 0.0
    assert bench.limit() == 7

    bench.demand.end_wait()
    bench.prefetch.on_acquired(7)
    assert bench.due(0.1) == math.inf


def test_demand_up_to_nothing_suspends_fetches_until_the_next_demand() -> None:
    bench = Bench()
    bench.demand.begin_wait(0.0)
    bench.demand.up_to(0)
    assert bench.due(0.0) == math.inf
    before = bench.wakes

    bench.demand.up_to(3)

    assert bench.due(0.0) == 0.0
    assert bench.wakes == before + 1


def test_rounds_are_due_without_a_request_while_nothing_is_buffered() -> None:
    bench = Bench()
    bench.demand.rounds(400)
    assert bench.due(0.0) == 0.0
    assert bench.limit() == 400
    assert bench.prefetch.takes_whole_batches(leaders=1)

    bench.prefetch.on_acquired(400)
    assert bench.due(0.0) == math.inf
    bench.demand.on_delivered(400, 1.0)
    assert bench.due(1.0) == 1.0

    bench.demand.nothing()
    assert bench.due(1.0) == math.inf


def test_exact_rounds_request_no_whole_batches() -> None:
    bench = Bench()
    bench.demand.rounds(400, exact=True)
    assert bench.limit() == 400
    assert not bench.prefetch.takes_whole_batches(leaders=1)

    bench.demand.rounds(400)
    assert bench.prefetch.takes_whole_batches(leaders=1)


def test_rounds_request_no_more_than_the_windows_hold() -> None:
    bench = Bench()
    bench.demand.rounds(60_000)
    assert bench.limit() == 2000

    bench.demand.rounds(60_000, window=10_000)
    assert bench.limit() == 10_000


def test_request_wakes_the_leaders() -> None:
    bench = Bench()

    bench.demand.begin_wait(0.0)

    assert bench.wakes == 1


@pytest.mark.parametrize(("seconds", "is_ahead"), [(0.1, True), (20.0, False)])
def test_demand_for_handlers_is_ahead_only_while_they_are_fast(
    seconds: float, is_ahead: bool
) -> None:
    bench = Bench()
    bench.prefetch.measure([], LOCK)
    bench.demand.pace.on_call_ended(seconds)

    assert bench.demand.for_handlers(5, 0.0) is is_ahead
    bench.demand.begin_wait(0.0)

    assert bench.limit() == (1 if is_ahead else 5)


def test_demand_for_busy_handlers_ends_after_an_eighth_of_the_lock() -> None:
    bench = Bench()
    bench.prefetch.measure([], LOCK)
    bench.demand.pace.on_call_ended(0.1)
    bench.demand.begin_wait(0.0)

    assert bench.demand.for_handlers(0, 100.0)
    assert bench.demand.pace.busy_until(bench.demand.lock_duration) == 103.75
    assert bench.due(100.0) == 100.0
    assert not bench.demand.for_handlers(0, 103.8)
    assert bench.due(103.8) == math.inf


def test_handlers_have_no_more_than_the_maximum() -> None:
    bench = Bench()

    assert not bench.demand.for_handlers(MAX_RECORDS + 1, 0.0)

    assert bench.limit() == MAX_RECORDS
