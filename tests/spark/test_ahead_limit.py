"""How far acquiring is ahead of the batches of a query."""

import pytest

from sharecons.spark.ahead_limit import AheadLimit


class Query:
    """A query with a limit of its own, and simulated time.

    Each batch takes all offsets that the ledger can hold, up to `available`.
    """

    def __init__(self, *, rate, fixed_cost=0.3, interval=0.0, **options):
        self.limit = AheadLimit(0, **options)
        self.rate, self.fixed_cost, self.interval = rate, fixed_cost, interval
        self.now = 100.0
        self.sizes = []
        self.times = []

    def run(self, batches, available=10**9):
        for _ in range(batches):
            count = min(self.limit.size, available)
            position = self.limit.planned_until + count
            self.limit.on_planned(position, self.now)
            seconds = self.fixed_cost + count / self.rate
            self.now += max(seconds, self.interval)
            self.limit.on_finished(position, self.now)
            self.sizes.append(count)
            self.times.append(seconds)


def test_limit_is_twice_the_maximum_of_a_batch():
    assert AheadLimit(0, max_offsets=100).size == 200


def test_limit_of_the_user_is_kept():
    query = Query(rate=10, fixed=5000, max_offsets=100)
    query.run(10)

    assert query.limit.size == 5000


@pytest.mark.parametrize("options", [{"fixed": 10}, {"max_offsets": 80}, {}])
def test_limit_has_room_for_a_batch_of_the_minimum_size(options):
    query = Query(rate=10, min_offsets=700, **options)
    query.run(20)

    assert query.limit.size >= 700


@pytest.mark.parametrize("rate", [50, 100, 1000, 30_000])
def test_batches_without_a_limit_take_ten_seconds(rate):
    query = Query(rate=rate)
    query.run(20)

    assert query.times[-1] == pytest.approx(10, abs=2)
    assert max(query.times) < 21


def test_fast_query_reaches_its_full_size_after_four_batches():
    query = Query(rate=500_000)
    query.run(5)

    assert query.sizes[4] > 500_000


def test_very_slow_query_holds_a_hundred_offsets():
    query = Query(rate=1)
    query.run(5)

    assert query.limit.size <= 200


def test_slow_batches_reduce_the_limit_immediately():
    query = Query(rate=100_000)
    query.run(10)
    query.rate = 100
    query.run(2, available=10_000)

    assert query.limit.size <= 1000


def test_small_batches_reduce_the_limit_slowly():
    query = Query(rate=100_000)
    query.run(10)
    before = query.limit.size
    query.run(2, available=10)

    assert query.limit.size == before // 4


def test_long_trigger_interval_does_not_make_batches_small():
    query = Query(rate=10_000, interval=60)
    query.run(14)

    # The query processes 600,000 offsets in one interval.
    assert query.sizes[-1] >= 300_000
    query.run(20)
    assert all(seconds <= 130 for seconds in query.times)
    assert max(query.sizes[-2:]) >= 300_000


def test_slow_batches_do_not_grow_without_end():
    query = Query(rate=5)
    query.run(100)

    assert max(query.sizes[1:]) <= 200


def test_room_is_what_the_ledger_can_hold_beyond_the_planned_batches():
    limit = AheadLimit(50, max_offsets=100)
    limit.on_finished(50, 0.0)

    assert limit.room(50) == 200
    assert limit.room(250) == 0
    limit.on_planned(150, 1.0)
    limit.on_planned(150, 1.0)
    assert limit.room(250) == 100


def test_there_is_no_room_before_the_position_of_the_query_is_known():
    limit = AheadLimit(50, max_offsets=100)

    assert limit.room(50) == 0
    limit.on_planned(50, 1.0)
    assert limit.room(50) == 200


def test_batches_of_an_earlier_process_have_finished():
    limit = AheadLimit(50, max_offsets=100)
    limit.on_finished(150, 1.0)

    assert limit.finished_until == limit.planned_until == 150
    assert limit.room(150) == 200
