"""Stream and batch queries, with a fake driver instead of Kafka."""

import pytest

from sharecons._record import TopicPartition
from sharecons.errors import ConnectionFailedError
from sharecons.spark import entries
from sharecons.spark.batch import BatchQuery
from sharecons.spark.errors import LedgerError, LedgerLostError
from sharecons.spark.factory import OpenedDriver
from sharecons.spark.ledger import AcquiredRange, Ledger
from sharecons.spark.options import read_options
from sharecons.spark.planning import ALL_OFFSETS, AvailableNowTarget
from sharecons.spark.store import Store
from sharecons.spark.stream import StreamQuery
from tests.spark.memory_storage import Killed, MemoryStorage

ID = bytes(range(16))
LEDGER = "0123abcd"
NEEDED = {
    "kafka.bootstrap.servers": "localhost:9092",
    "subscribe": "orders",
    "kafka.share.group.id": "billing",
    "ledgerLocation": "/ledgers/billing",
}


class FakeDriver:
    """A ledger that fills at given times, and a simulated clock."""

    acquired_bytes = 500  # of five offsets

    def __init__(self, ledger=None, missing=0):
        self.ledger = ledger or Ledger()
        self.now = 100.0
        self.arrivals = []
        self.planned_to = 0
        self.finished_to = 0
        self.finished = 0
        self.max_offsets_ahead = 1_000_000
        self.left = 0
        self.stopped = 0
        self.store = None
        self.on_start = None
        self.on_leave = None
        self.fails_at = None
        self.has_ended = False
        self.waits = 0
        self.last_acquired = self.now
        bounds = {TopicPartition("orders", 0): (0, missing)} if missing else {}
        self.target = AvailableNowTarget(bounds, {}, self.ledger.end)

    def open(self):
        return OpenedDriver(self, LEDGER, self.finished)

    def attach(self, store, ledger):
        """Return this driver for a batch's store and ledger."""
        self.store, self.ledger = store, ledger
        return self

    def start(self):
        if self.on_start is not None:
            self.on_start()

    @property
    def begin(self):
        return self.ledger.begin

    @property
    def end(self):
        return self.ledger.end

    def ranges_between(self, start, end):
        return self.ledger.ranges_between(start, end)

    def acquire(self, count):
        first = self.ledger.end
        acquired = [AcquiredRange("orders", ID, 0, first, first + count - 1, 1)]
        if self.store is not None:
            self.store.append(acquired)
        self.ledger.append(acquired)
        self.target.mark_acquired(acquired)
        self.last_acquired = self.now

    def wait_beyond(self, position, timeout):
        if self.fails_at is not None and position >= self.fails_at:
            raise ConnectionFailedError("no broker responds")
        if self.end <= position:
            self.now += timeout
            if self.arrivals and self.arrivals[0][0] <= self.now:
                self.acquire(self.arrivals.pop(0)[1])
        return self.end

    def wait_for_offsets(self, position, size, timeout):
        self.waits += 1
        if self.has_ended:
            return self.end
        until = self.now + timeout
        while self.end < position + size and not self.target.is_reached:
            if not self.arrivals or self.arrivals[0][0] > until:
                self.now = until
                break
            when, count = self.arrivals.pop(0)
            self.now = max(self.now, when)
            self.acquire(count)
        return self.end

    def mark_planned(self, position):
        self.planned_to = position

    def mark_finished(self, position):
        self.finished_to = position

    def trim(self, position):
        self.ledger.trim(position)

    def idle_since(self):
        return self.last_acquired

    def can_finish(self):
        return True

    def stats(self):
        return {"acquired": 5, "lag": 7, "acquired_bytes": self.acquired_bytes}

    def leave_group(self):
        self.left += 1
        if self.on_leave is not None:
            self.on_leave()

    def stop(self):
        self.stopped += 1
        if self.store is not None:
            self.store.close()


def stream(driver, **options):
    return StreamQuery(
        read_options(NEEDED | options),
        opener=lambda *_: driver.open(),
        clock=lambda: driver.now,
    )


def at(position):
    return {"position": position, "ledger": LEDGER}


def latest(query, start, max_offsets=None, min_offsets=None):
    return query.latest_offset(
        at(start), max_offsets=max_offsets, min_offsets=min_offsets
    )["position"]


# Streams.


def test_new_query_starts_at_the_ledgers_begin():
    driver = FakeDriver()
    driver.acquire(10)
    driver.trim(4)

    assert stream(driver).initial_offset() == at(4)


def test_batch_ends_at_the_ledgers_end_or_its_limit():
    driver = FakeDriver()
    driver.acquire(100)
    query = stream(driver)

    assert latest(query, 0) == 100
    assert latest(query, 0, max_offsets=30) == 30
    assert driver.planned_to == 30
    assert latest(query, 90, max_offsets=30) == 100


def test_batch_has_about_its_maximum_of_bytes():
    driver = FakeDriver()
    driver.acquire(100)
    query = stream(driver, maxBytesPerTrigger="3000", maxOffsetsPerTrigger="40")

    assert latest(query, 0) == 30
    assert latest(query, 0, max_offsets=40) == 30
    assert latest(query, 0, max_offsets=7) == 7
    assert latest(query, 0, max_offsets=ALL_OFFSETS) == 100


def test_batch_of_unknown_size_is_limited_before_anything_is_acquired():
    driver = FakeDriver()
    driver.acquire(100)
    driver.acquired_bytes = 0

    assert latest(stream(driver, maxBytesPerTrigger="3k"), 0) == 3
    assert latest(stream(driver, maxBytesPerTrigger="1"), 0) == 1


def test_latest_offset_without_new_records_returns_the_start():
    driver = FakeDriver()
    driver.acquire(10)

    assert latest(stream(driver), 10) == 10
    assert 0 < driver.now - 100 <= 0.2


def test_small_batch_waits_for_max_trigger_delay():
    driver = FakeDriver()
    query = stream(driver, minOffsetsPerTrigger="50", maxTriggerDelay="20s")
    driver.acquire(10)

    assert latest(query, 0, min_offsets=50) == 0
    driver.now += 19
    assert latest(query, 0, min_offsets=50) == 0
    driver.now += 2
    assert latest(query, 0, min_offsets=50) == 10
    # The delay starts again at each batch.
    driver.acquire(10)
    assert latest(query, 10, min_offsets=50) == 10
    driver.acquire(40)
    assert latest(query, 10, min_offsets=50) == 60


def test_offset_of_another_ledger_is_rejected():
    driver = FakeDriver()
    driver.acquire(10)
    query = stream(driver)

    with pytest.raises(LedgerLostError, match="belongs to the ledger other"):
        query.latest_offset(
            {"position": 5, "ledger": "other"}, max_offsets=None, min_offsets=None
        )


# A checkpoint that is older than the ledger, or newer.


def old_checkpoint(*, begin=0, finished=30, **options):
    """Return a query and its driver, whose ledger has 50 offsets."""
    driver = FakeDriver()
    driver.acquire(50)
    driver.ledger.trim(begin)
    driver.finished = finished
    return stream(driver, **options), driver


@pytest.mark.parametrize(("begin", "finished"), [(0, 30), (30, 0)])
def test_checkpoint_before_finished_batches_is_rejected(begin, finished):
    query, driver = old_checkpoint(begin=begin, finished=finished)

    with pytest.raises(LedgerLostError, match="at position 10, but .* up to 30 of"):
        latest(query, 10)
    assert driver.finished_to == driver.planned_to == 0


def test_error_for_an_old_checkpoint_names_the_records():
    query, _ = old_checkpoint()

    with pytest.raises(LedgerLostError) as caught:
        latest(query, 10)
    assert "in /ledgers/billing have finished (orders-0 offsets 10 to 29)" in str(
        caught.value
    )


def test_old_checkpoint_is_read_again_if_loss_is_allowed(caplog):
    query, _ = old_checkpoint(failOnDataLoss="false")

    assert latest(query, 10) == 50
    assert "records of finished batches are read again" in caplog.text


def test_query_without_a_checkpoint_starts_after_finished_batches():
    query, _ = old_checkpoint(begin=10)

    assert query.initial_offset()["position"] == 30
    assert latest(query, 30) == 50


def test_batch_of_an_earlier_run_is_planned_again_with_its_end():
    ends = f'{{"{LEDGER}": [20, 40], "another": [25]}}'
    query, _ = old_checkpoint(batchEnds=ends)

    assert [latest(query, start) for start in (10, 20, 40)] == [20, 40, 50]


def test_trimmed_batch_whose_results_are_stored_has_no_tasks():
    query, _ = old_checkpoint(begin=20, batchEnds=f'{{"{LEDGER}": [20]}}')
    ends = [{"position": n, "ledger": LEDGER} for n in (0, 20, 30)]

    assert query.plan_tasks(*ends[:2]) == []
    assert [each.size for (each,) in query.plan_tasks(*ends[1:])] == [10]


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({"ledger_end": 60}, {}),
        ({}, {"batchEnds": f'{{"{LEDGER}": [60]}}'}),
    ],
)
def test_ledger_without_entries_that_an_earlier_run_has_read_is_rejected(more, options):
    query, _ = old_checkpoint(**options)
    start = {"position": 40, "ledger": LEDGER} | more

    with pytest.raises(LedgerLostError, match="up to position 60, but it ends at 50"):
        query.latest_offset(start, max_offsets=None, min_offsets=None)


def test_offset_without_new_records_is_the_same():
    driver = FakeDriver()
    driver.acquire(10)
    query = stream(driver)
    end = query.latest_offset(query.initial_offset(), max_offsets=4, min_offsets=None)
    assert end == {"position": 4, "ledger": LEDGER, "ledger_end": 10}
    end = query.latest_offset(end, max_offsets=None, min_offsets=None)
    driver.acquire(1)

    assert query.latest_offset(end, max_offsets=None, min_offsets=10) == end


def test_position_beyond_the_ledger_is_rejected():
    driver = FakeDriver()
    driver.acquire(10)

    with pytest.raises(LedgerLostError, match="up to position 11, but it ends at 10"):
        stream(driver).plan_tasks(at(5), at(11))


def test_replayed_batch_has_the_same_tasks():
    driver = FakeDriver()
    driver.acquire(100)
    query = stream(driver, minPartitions="3")
    first = query.plan_tasks(at(10), at(60))
    driver.acquire(500)

    assert query.plan_tasks(at(10), at(60)) == first
    assert sum(t.size for task in first for t in task) == 50


def test_commit_trims_the_ledger():
    driver = FakeDriver()
    driver.acquire(100)
    stream(driver).commit(at(40))

    assert driver.begin == 40


def test_batches_before_the_requested_one_have_finished():
    driver = FakeDriver()
    driver.acquire(100)
    query = stream(driver)

    latest(query, 0, max_offsets=30)
    assert driver.finished_to == 0
    latest(query, 30, max_offsets=30)
    assert driver.finished_to == 30


def test_progress_has_the_ledgers_end_and_the_stats():
    driver = FakeDriver()
    driver.acquire(10)

    assert stream(driver).report_latest_offset() == {
        **at(10),
        "acquired": 5,
        "lag": 7,
        "acquired_bytes": 500,
    }


# Trigger.AvailableNow.


def run_available_now(driver, max_offsets=None, **options):
    limits = {"max_offsets": max_offsets}
    query = stream(driver, **options)
    query.end_when_drained()
    ends = [0]
    while (end := latest(query, ends[-1], **limits)) != ends[-1]:
        ends.append(end)
    assert latest(query, ends[-1], **limits) == ends[-1]
    return ends[1:]


def test_available_now_ends_at_its_target():
    driver = FakeDriver(missing=100)
    driver.arrivals = [(101, 60), (103, 40)]

    assert run_available_now(driver) == [60, 100]


def arrivals_every(seconds, count, times):
    return [(100 + n * seconds, count) for n in range(times)]


def test_available_now_waits_for_a_larger_batch():
    driver = FakeDriver(missing=100)
    driver.arrivals = arrivals_every(0.04, 5, 20)

    assert run_available_now(driver) == [100]


def test_available_now_runs_a_batch_at_max_offsets():
    driver = FakeDriver(missing=100)
    driver.arrivals = arrivals_every(0.04, 5, 20)

    assert run_available_now(driver, max_offsets=40) == [40, 80, 100]
    assert driver.now < 101


def test_available_now_batch_is_limited_by_max_offsets_ahead():
    driver = FakeDriver(missing=100)
    driver.arrivals = arrivals_every(0.04, 5, 20)
    driver.max_offsets_ahead = 50

    assert run_available_now(driver) == [50, 100]


def test_available_now_batch_grows_for_a_limited_time():
    driver = FakeDriver(missing=100)
    driver.arrivals = arrivals_every(0.2, 1, 100)

    first, *_ = run_available_now(driver)
    assert 4 <= first <= 8


def test_available_now_does_not_wait_after_the_member_has_ended():
    driver = FakeDriver(missing=100)
    driver.acquire(60)
    driver.has_ended = True
    query = stream(driver)
    query.end_when_drained()

    assert latest(query, 0) == 60
    assert driver.waits == 1


def test_available_now_batches_have_at_most_max_offsets():
    driver = FakeDriver(missing=100)
    driver.acquire(100)

    assert run_available_now(driver, max_offsets=40) == [40, 80, 100]


def test_available_now_without_records_ends_immediately():
    driver = FakeDriver()

    assert run_available_now(driver) == []
    assert driver.now == 100


def test_available_now_reads_older_ranges_of_the_ledger():
    ledger = Ledger()
    ledger.append([AcquiredRange("orders", ID, 0, 0, 29, 1)])

    assert run_available_now(FakeDriver(ledger)) == [30]


def test_available_now_does_not_follow_producers():
    driver = FakeDriver(missing=100)
    driver.acquire(90)
    driver.acquire(50)
    driver.arrivals = [(100, 50)] * 10

    assert run_available_now(driver) == [140]


def test_available_now_ends_though_others_hold_records_and_producers_continue():
    driver = FakeDriver()
    bounds = {TopicPartition("orders", n): (0, 10) for n in (0, 1)}
    driver.target = AvailableNowTarget(bounds, {}, 0)
    driver.arrivals = [(100 + second, 50) for second in range(1, 100)]
    run_available_now(driver)

    assert 110 <= driver.now < 115


def test_available_now_ends_though_others_hold_records():
    driver = FakeDriver(missing=100)
    driver.arrivals = [(101, 60)]

    assert run_available_now(driver) == [60]
    assert 10 <= driver.now - driver.last_acquired < 11


# Batches.


class LedgerQueries:
    """Creates queries on one ledger; each has a store like a process of its own."""

    def __init__(self):
        self.storage = MemoryStorage()

    def load(self, driver, load_id="one", *, store=None, **options):
        return BatchQuery(
            read_options(NEEDED | options, streaming=False),
            load_id,
            store=store or Store(self.storage),
            driver_factory=lambda _, store, ledger: driver.attach(store, ledger),
            clock=lambda: driver.now,
        )

    def add_offsets(self, count):
        """Add offsets to the ledger, acquired by an earlier query."""
        store = Store(self.storage)
        ledger = store.open("billing")
        FakeDriver().attach(store, ledger).acquire(count)
        store.close()

    def commit(self, position):
        """Commit up to a position, like a stream."""
        store = Store(self.storage)
        ledger = store.open("billing")
        ledger.trim(position)
        store.trim(ledger)
        store.close()

    def kinds(self):
        return [
            entries.parse_entry(data, name).kind
            for name, data in sorted(self.storage.files.items())
        ]


def driver_for(*counts, **more):
    """Return a driver that acquires these counts of offsets, one after the other."""
    driver = FakeDriver(missing=sum(counts), **more)
    driver.arrivals = [(100, count) for count in counts]
    return driver


def sizes(tasks):
    return sum(each.size for task in tasks for each in task)


def spans(tasks):
    """Return first and last offset of each range of all tasks; positions, here."""
    return [(each.first_offset, each.last_offset) for task in tasks for each in task]


def test_batch_reads_the_records_it_acquires():
    driver = FakeDriver(missing=100)
    driver.arrivals = [(101, 100)]

    assert sizes(LedgerQueries().load(driver).plan_tasks()) == 100
    assert driver.stopped == 1


def test_batch_skips_records_of_an_earlier_one():
    queries = LedgerQueries()
    queries.add_offsets(30)

    assert queries.load(FakeDriver()).plan_tasks() == []
    earliest = queries.load(FakeDriver(), "two", startingPosition="earliest")
    assert sizes(earliest.plan_tasks()) == 30
    tenth = queries.load(FakeDriver(), "three", startingPosition="10")
    assert sizes(tenth.plan_tasks()) == 20


def test_batch_reads_records_acquired_before_its_first_wait():
    driver = FakeDriver(missing=100)
    # The member acquires before `start` returns.
    driver.on_start = lambda: driver.acquire(100)

    assert sizes(LedgerQueries().load(driver).plan_tasks()) == 100


def test_batch_with_ending_position_acquires_nothing():
    queries = LedgerQueries()
    queries.add_offsets(30)
    before = dict(queries.storage.files)
    driver = FakeDriver(missing=100)
    tasks = queries.load(driver, startingPosition="5", endingPosition="25").plan_tasks()

    assert sizes(tasks) == 20
    assert driver.now == 100
    assert queries.storage.files == before


def test_batch_stops_acquiring_at_its_limit():
    driver = driver_for(40, 40, 20)

    assert (
        sizes(LedgerQueries().load(driver, maxOffsetsPerTrigger="50").plan_tasks())
        == 80
    )


def test_batch_includes_records_acquired_while_leaving():
    queries = LedgerQueries()
    queries.add_offsets(10)
    driver = FakeDriver()
    driver.on_leave = lambda: driver.acquire(5)

    assert sizes(queries.load(driver, startingPosition="earliest").plan_tasks()) == 15


@pytest.mark.parametrize("position", ["11", "5"])
def test_position_outside_the_ledger_is_rejected(position):
    queries = LedgerQueries()
    queries.add_offsets(6)
    queries.add_offsets(4)
    queries.commit(6)

    with pytest.raises(LedgerLostError, match="ledger.* (ends at 10|begins at .* 6)"):
        queries.load(FakeDriver(), startingPosition=position).plan_tasks()


# One load(), planned several times.


def test_load_planned_again_reads_the_same_and_acquires_nothing():
    queries = LedgerQueries()
    queries.add_offsets(10)
    first = queries.load(driver_for(60, 40), minPartitions="3").plan_tasks()
    again = driver_for(50)
    before = dict(queries.storage.files)

    assert queries.load(again, minPartitions="3").plan_tasks() == first
    assert sizes(first) == 100
    assert again.now == 100
    assert queries.storage.files == before


def test_load_that_acquired_nothing_acquires_nothing_later():
    queries = LedgerQueries()
    assert queries.load(FakeDriver()).plan_tasks() == []

    assert queries.load(driver_for(50)).plan_tasks() == []
    assert sizes(queries.load(driver_for(50), "two").plan_tasks()) == 50


@pytest.mark.parametrize("start", ["earliest", "4"])
def test_load_planned_again_after_other_loads_reads_from_the_same_start(start):
    queries = LedgerQueries()
    queries.add_offsets(10)
    first = queries.load(driver_for(5), startingPosition=start).plan_tasks()
    queries.load(driver_for(20), "two").plan_tasks()

    assert queries.load(driver_for(50), startingPosition=start).plan_tasks() == first


def test_load_that_failed_while_acquiring_is_continued():
    queries = LedgerQueries()
    queries.add_offsets(10)
    failing = driver_for(20, 30)
    failing.fails_at = 30
    with pytest.raises(ConnectionFailedError):
        queries.load(failing).plan_tasks()

    assert spans(queries.load(driver_for(7)).plan_tasks()) == [(10, 36)]
    assert spans(queries.load(driver_for(50)).plan_tasks()) == [(10, 36)]


def test_continued_load_counts_earlier_offsets_against_its_limit():
    queries = LedgerQueries()
    failing = driver_for(20, 30)
    failing.fails_at = 20
    with pytest.raises(ConnectionFailedError):
        queries.load(failing, maxOffsetsPerTrigger="30").plan_tasks()

    driver = FakeDriver(missing=100)
    driver.arrivals = arrivals_every(0, 5, 4)
    assert spans(queries.load(driver, maxOffsetsPerTrigger="30").plan_tasks()) == [
        (0, 29)
    ]


def test_continued_load_skips_records_of_other_loads():
    queries = LedgerQueries()
    failing = driver_for(20, 30)
    failing.fails_at = 20
    with pytest.raises(ConnectionFailedError):
        queries.load(failing).plan_tasks()
    assert spans(queries.load(driver_for(30), "two").plan_tasks()) == [(20, 49)]

    assert spans(queries.load(driver_for(5)).plan_tasks()) == [(0, 19), (50, 54)]


@pytest.mark.parametrize("fault", ["killed before", "killed after", "response lost"])
def test_load_killed_at_any_write_is_continued_without_loss(fault):
    for entry in range(10):
        queries = LedgerQueries()
        driver = driver_for(20, 30)
        create, queries.storage.create = queries.storage.create, None

        def failing_create(name, data, *, create=create, queries=queries, entry=entry):
            if len(queries.storage.files) == entry:
                queries.storage.fault = fault
            create(name, data)

        queries.storage.create = failing_create
        try:
            queries.load(driver).plan_tasks()
        except (Killed, LedgerError):
            queries.storage.create = create
        else:
            # opened, begun, two segments, complete
            assert entry == 5
            break
        ledger_end = Store(queries.storage).read("billing").ledger.end
        tasks = queries.load(
            driver_for(*[50 - ledger_end] if ledger_end < 50 else [])
        ).plan_tasks()
        assert spans(tasks) == [(0, 49)]
    else:
        pytest.fail("never ended")


def test_load_survives_a_snapshot_by_a_stream():
    queries = LedgerQueries()
    queries.add_offsets(10)
    first = queries.load(driver_for(20)).plan_tasks()
    queries.commit(10)
    Store(queries.storage).open("billing")

    assert "trimmed" in queries.kinds()
    assert queries.load(driver_for(5)).plan_tasks() == first


@pytest.mark.parametrize("position", [5, 20, 30])
def test_load_committed_by_a_stream_is_rejected(position):
    queries = LedgerQueries()
    queries.load(driver_for(5, 15)).plan_tasks()
    queries.add_offsets(10)
    queries.commit(position)

    with pytest.raises(LedgerLostError, match=r"position 0 .* call load\(\) again"):
        queries.load(driver_for(5)).plan_tasks()


def test_unfinished_load_committed_by_a_stream_is_rejected():
    queries = LedgerQueries()
    failing = driver_for(20, 30)
    failing.fails_at = 20
    with pytest.raises(ConnectionFailedError):
        queries.load(failing).plan_tasks()
    queries.commit(20)

    with pytest.raises(LedgerLostError, match=r"call load\(\) again"):
        queries.load(driver_for(5)).plan_tasks()


def test_load_planned_by_another_process_meanwhile_is_read():
    queries = LedgerQueries()
    store = Store(queries.storage)
    open_store = store.open

    def open_late(*given, **more):
        # Another planning gets the lock first.
        queries.load(driver_for(20)).plan_tasks()
        return open_store(*given, **more)

    store.open = open_late

    assert spans(queries.load(driver_for(50), store=store).plan_tasks()) == [(0, 19)]
