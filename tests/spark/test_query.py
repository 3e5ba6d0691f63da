"""What a query is asked, and what it answers; no Spark and no Kafka here."""

import pytest

from sharecons._record import TopicPartition
from sharecons.errors import ConnectionFailedError
from sharecons.spark import entries
from sharecons.spark.batch import BatchQuery
from sharecons.spark.errors import LedgerError, LedgerLostError
from sharecons.spark.factory import OpenedDriver
from sharecons.spark.ledger import AcquiredRange, Ledger
from sharecons.spark.options import read_options
from sharecons.spark.planning import AvailableNowTarget
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
    """A ledger that fills as it is told to, on a clock that does not run."""

    def __init__(self, ledger=None, lacking=0):
        self.ledger = ledger or Ledger()
        self.now = 100.0
        self.coming = []
        self.planned_to = 0
        self.left = 0
        self.stopped = 0
        self.store = None
        self.on_start = None
        self.on_leave = None
        self.fails_at = None
        self.has_ended = False
        self.asked = 0
        self.last_came = self.now
        bounds = {TopicPartition("orders", 0): (0, lacking)} if lacking else {}
        self.target = AvailableNowTarget(bounds, {}, self.ledger.end)

    def open(self):
        return OpenedDriver(self, LEDGER)

    def lead(self, store, ledger):
        """Acquire for a batch: into its ledger, and its store."""
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

    def give(self, count):
        first = self.ledger.end
        taken = [AcquiredRange("orders", ID, 0, first, first + count - 1, 1)]
        if self.store is not None:
            self.store.append(taken)
        self.ledger.append(taken)
        self.target.mark_acquired(taken)
        self.last_came = self.now

    def wait_beyond(self, position, timeout):
        if self.fails_at is not None and position >= self.fails_at:
            raise ConnectionFailedError("no broker answers")
        if self.end <= position:
            self.now += timeout
            if self.coming and self.coming[0][0] <= self.now:
                self.give(self.coming.pop(0)[1])
        return self.end

    def wait_for_offsets(self, position, size, timeout):
        self.asked += 1
        if self.has_ended:
            return self.end
        until = self.now + timeout
        while self.end < position + size and not self.target.is_reached:
            if not self.coming or self.coming[0][0] > until:
                self.now = until
                break
            when, count = self.coming.pop(0)
            self.now = max(self.now, when)
            self.give(count)
        return self.end

    def mark_planned(self, position):
        self.planned_to = position

    def trim(self, position):
        self.ledger.trim(position)

    def idle_since(self):
        return self.last_came

    def can_finish(self):
        return True

    def stats(self):
        return {"acquired": 5, "lag": 7}

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
    driver.give(10)
    driver.trim(4)

    assert stream(driver).initial_offset() == at(4)


def test_batch_ends_at_the_ledgers_end_or_its_limit():
    driver = FakeDriver()
    driver.give(100)
    query = stream(driver)

    assert latest(query, 0) == 100
    assert latest(query, 0, max_offsets=30) == 30
    assert driver.planned_to == 30
    assert latest(query, 90, max_offsets=30) == 100


def test_latest_offset_without_new_records_returns_the_start():
    driver = FakeDriver()
    driver.give(10)

    assert latest(stream(driver), 10) == 10
    assert 0 < driver.now - 100 <= 0.2


def test_small_batch_waits_for_max_trigger_delay():
    driver = FakeDriver()
    query = stream(driver, minOffsetsPerTrigger="50", maxTriggerDelay="20s")
    driver.give(10)

    assert latest(query, 0, min_offsets=50) == 0
    driver.now += 19
    assert latest(query, 0, min_offsets=50) == 0
    driver.now += 2
    assert latest(query, 0, min_offsets=50) == 10
    # The delay counts from that batch on.
    driver.give(10)
    assert latest(query, 10, min_offsets=50) == 10
    driver.give(40)
    assert latest(query, 10, min_offsets=50) == 60


def test_offset_of_another_ledger_is_rejected():
    driver = FakeDriver()
    driver.give(10)
    query = stream(driver)

    with pytest.raises(LedgerLostError, match="belongs to the ledger other"):
        query.latest_offset(
            {"position": 5, "ledger": "other"}, max_offsets=None, min_offsets=None
        )


def test_position_beyond_the_ledger_is_rejected():
    driver = FakeDriver()
    driver.give(10)

    with pytest.raises(LedgerLostError, match="at position 11, .* ends at 10"):
        stream(driver).plan_tasks(at(5), at(11))


def test_replayed_batch_has_the_same_tasks():
    driver = FakeDriver()
    driver.give(100)
    query = stream(driver, minPartitions="3")
    first = query.plan_tasks(at(10), at(60))
    driver.give(500)

    assert query.plan_tasks(at(10), at(60)) == first
    assert sum(t.size for task in first for t in task) == 50


def test_commit_trims_the_ledger():
    driver = FakeDriver()
    driver.give(100)
    stream(driver).commit(at(40))

    assert driver.begin == 40


def test_progress_has_the_ledgers_end_and_the_stats():
    driver = FakeDriver()
    driver.give(10)

    assert stream(driver).report_latest_offset() == {**at(10), "acquired": 5, "lag": 7}


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
    driver = FakeDriver(lacking=100)
    driver.coming = [(101, 60), (103, 40)]

    assert run_available_now(driver) == [60, 100]


def coming_every(seconds, count, times):
    return [(100 + n * seconds, count) for n in range(times)]


def test_available_now_waits_for_a_larger_batch():
    driver = FakeDriver(lacking=100)
    driver.coming = coming_every(0.04, 5, 20)

    assert run_available_now(driver) == [100]


def test_available_now_runs_a_batch_at_max_offsets():
    driver = FakeDriver(lacking=100)
    driver.coming = coming_every(0.04, 5, 20)

    assert run_available_now(driver, max_offsets=40) == [40, 80, 100]
    assert driver.now < 101


def test_available_now_batch_is_limited_by_max_offsets_ahead():
    driver = FakeDriver(lacking=100)
    driver.coming = coming_every(0.04, 5, 20)

    assert run_available_now(driver, maxOffsetsAhead="50") == [50, 100]


def test_available_now_batch_grows_for_a_limited_time():
    driver = FakeDriver(lacking=100)
    driver.coming = coming_every(0.2, 1, 100)

    first, *_ = run_available_now(driver)
    assert 4 <= first <= 8


def test_available_now_does_not_wait_after_the_member_has_ended():
    driver = FakeDriver(lacking=100)
    driver.give(60)
    driver.has_ended = True
    query = stream(driver)
    query.end_when_drained()

    assert latest(query, 0) == 60
    assert driver.asked == 1


def test_available_now_batches_have_at_most_max_offsets():
    driver = FakeDriver(lacking=100)
    driver.give(100)

    assert run_available_now(driver, max_offsets=40) == [40, 80, 100]


def test_available_now_without_records_ends_at_once():
    driver = FakeDriver()

    assert run_available_now(driver) == []
    assert driver.now == 100


def test_available_now_reads_older_ranges_of_the_ledger():
    ledger = Ledger()
    ledger.append([AcquiredRange("orders", ID, 0, 0, 29, 1)])

    assert run_available_now(FakeDriver(ledger)) == [30]


def test_available_now_does_not_follow_producers():
    driver = FakeDriver(lacking=100)
    driver.give(90)
    driver.give(50)
    driver.coming = [(100, 50)] * 10

    assert run_available_now(driver) == [140]


def test_available_now_ends_though_others_hold_records_and_producers_continue():
    driver = FakeDriver()
    places = {TopicPartition("orders", n): (0, 10) for n in (0, 1)}
    driver.target = AvailableNowTarget(places, {}, 0)
    driver.coming = [(100 + second, 50) for second in range(1, 100)]
    run_available_now(driver)

    assert 110 <= driver.now < 115


def test_available_now_ends_though_others_hold_records():
    driver = FakeDriver(lacking=100)
    driver.coming = [(101, 60)]

    assert run_available_now(driver) == [60]
    assert 10 <= driver.now - driver.last_came < 11


# Batches.


class Place:
    """A ledger's place; its loads are made by queries as processes would make them."""

    def __init__(self):
        self.storage = MemoryStorage()

    def load(self, driver, load_id="one", **options):
        return BatchQuery(
            read_options(NEEDED | options, streaming=False),
            load_id,
            store=Store(self.storage),
            driver_factory=lambda _, store, ledger: driver.lead(store, ledger),
            clock=lambda: driver.now,
        )

    def hold(self, count):
        """Have the ledger hold so many offsets, of a query before these."""
        store = Store(self.storage)
        ledger = store.open("billing")
        FakeDriver().lead(store, ledger).give(count)
        store.close()

    def commit(self, position):
        """Have a stream commit."""
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


def coming(*counts, **more):
    """Return a driver that acquires so much, one count after the other."""
    driver = FakeDriver(lacking=sum(counts), **more)
    driver.coming = [(100, count) for count in counts]
    return driver


def sizes(tasks):
    return sum(each.size for task in tasks for each in task)


def spans(tasks):
    """Return first and last offset of each range of all tasks; positions, here."""
    return [(each.first_offset, each.last_offset) for task in tasks for each in task]


def test_batch_reads_the_records_it_acquires():
    driver = FakeDriver(lacking=100)
    driver.coming = [(101, 100)]

    assert sizes(Place().load(driver).plan_tasks()) == 100
    assert driver.stopped == 1


def test_batch_skips_records_of_an_earlier_one():
    place = Place()
    place.hold(30)

    assert place.load(FakeDriver()).plan_tasks() == []
    earliest = place.load(FakeDriver(), "two", startingPosition="earliest")
    assert sizes(earliest.plan_tasks()) == 30
    tenth = place.load(FakeDriver(), "three", startingPosition="10")
    assert sizes(tenth.plan_tasks()) == 20


def test_batch_reads_records_acquired_before_its_first_wait():
    driver = FakeDriver(lacking=100)
    # The member is quicker than who started it.
    driver.on_start = lambda: driver.give(100)

    assert sizes(Place().load(driver).plan_tasks()) == 100


def test_batch_with_ending_position_acquires_nothing():
    place = Place()
    place.hold(30)
    before = dict(place.storage.files)
    driver = FakeDriver(lacking=100)
    tasks = place.load(driver, startingPosition="5", endingPosition="25").plan_tasks()

    assert sizes(tasks) == 20
    assert driver.now == 100
    assert place.storage.files == before


def test_batch_stops_acquiring_at_its_limit():
    driver = coming(40, 40, 20)

    assert sizes(Place().load(driver, maxOffsetsPerTrigger="50").plan_tasks()) == 80


def test_batch_includes_records_acquired_while_leaving():
    place = Place()
    place.hold(10)
    driver = FakeDriver()
    driver.on_leave = lambda: driver.give(5)

    assert sizes(place.load(driver, startingPosition="earliest").plan_tasks()) == 15


@pytest.mark.parametrize("position", ["11", "5"])
def test_position_outside_the_ledger_is_rejected(position):
    place = Place()
    place.hold(6)
    place.hold(4)
    place.commit(6)

    with pytest.raises(LedgerLostError, match="ledger.* (ends at 10|begins at .* 6)"):
        place.load(FakeDriver(), startingPosition=position).plan_tasks()


# One load(), planned several times.


def test_load_planned_again_reads_the_same_and_acquires_nothing():
    place = Place()
    place.hold(10)
    first = place.load(coming(60, 40), minPartitions="3").plan_tasks()
    again = coming(50)
    before = dict(place.storage.files)

    assert place.load(again, minPartitions="3").plan_tasks() == first
    assert sizes(first) == 100
    assert again.now == 100
    assert place.storage.files == before


def test_load_that_acquired_nothing_acquires_nothing_later():
    place = Place()
    assert place.load(FakeDriver()).plan_tasks() == []

    assert place.load(coming(50)).plan_tasks() == []
    assert sizes(place.load(coming(50), "two").plan_tasks()) == 50


@pytest.mark.parametrize("start", ["earliest", "4"])
def test_load_planned_again_after_other_loads_reads_from_the_same_start(start):
    place = Place()
    place.hold(10)
    first = place.load(coming(5), startingPosition=start).plan_tasks()
    place.load(coming(20), "two").plan_tasks()

    assert place.load(coming(50), startingPosition=start).plan_tasks() == first


def test_load_that_failed_while_acquiring_is_continued():
    place = Place()
    place.hold(10)
    failing = coming(20, 30)
    failing.fails_at = 30
    with pytest.raises(ConnectionFailedError):
        place.load(failing).plan_tasks()

    assert spans(place.load(coming(7)).plan_tasks()) == [(10, 36)]
    assert spans(place.load(coming(50)).plan_tasks()) == [(10, 36)]


def test_continued_load_counts_earlier_offsets_against_its_limit():
    place = Place()
    failing = coming(20, 30)
    failing.fails_at = 20
    with pytest.raises(ConnectionFailedError):
        place.load(failing, maxOffsetsPerTrigger="30").plan_tasks()

    driver = FakeDriver(lacking=100)
    driver.coming = coming_every(0, 5, 4)
    assert spans(place.load(driver, maxOffsetsPerTrigger="30").plan_tasks()) == [
        (0, 29)
    ]


def test_continued_load_skips_records_of_other_loads():
    place = Place()
    failing = coming(20, 30)
    failing.fails_at = 20
    with pytest.raises(ConnectionFailedError):
        place.load(failing).plan_tasks()
    assert spans(place.load(coming(30), "two").plan_tasks()) == [(20, 49)]

    assert spans(place.load(coming(5)).plan_tasks()) == [(0, 19), (50, 54)]


@pytest.mark.parametrize("fate", ["killed before", "killed after", "answer lost"])
def test_load_killed_at_any_write_is_continued_without_loss(fate):
    for entry in range(10):
        place = Place()
        driver = coming(20, 30)
        create, place.storage.create = place.storage.create, None

        def dying(name, data, *, create=create, place=place, entry=entry):
            if len(place.storage.files) == entry:
                place.storage.fate = fate
            create(name, data)

        place.storage.create = dying
        try:
            place.load(driver).plan_tasks()
        except (Killed, LedgerError):
            place.storage.create = create
        else:
            # opened, begun, two segments, complete
            assert entry == 5
            break
        held = Store(place.storage).read("billing").ledger.end
        tasks = place.load(coming(*[50 - held] if held < 50 else [])).plan_tasks()
        assert spans(tasks) == [(0, 49)]
    else:
        pytest.fail("never ended")


def test_load_survives_a_snapshot_by_a_stream():
    place = Place()
    place.hold(10)
    first = place.load(coming(20)).plan_tasks()
    place.commit(10)
    Store(place.storage).open("billing")

    assert "trimmed" in place.kinds()
    assert place.load(coming(5)).plan_tasks() == first


@pytest.mark.parametrize("position", [5, 20, 30])
def test_load_committed_by_a_stream_is_rejected(position):
    place = Place()
    place.load(coming(5, 15)).plan_tasks()
    place.hold(10)
    place.commit(position)

    with pytest.raises(LedgerLostError, match=r"position 0 .* call load\(\) again"):
        place.load(coming(5)).plan_tasks()


def test_unfinished_load_committed_by_a_stream_is_rejected():
    place = Place()
    failing = coming(20, 30)
    failing.fails_at = 20
    with pytest.raises(ConnectionFailedError):
        place.load(failing).plan_tasks()
    place.commit(20)

    with pytest.raises(LedgerLostError, match=r"call load\(\) again"):
        place.load(coming(5)).plan_tasks()


def test_load_planned_by_another_process_meanwhile_is_read():
    place = Place()
    made = place.load(coming(50))
    load = made._store.open

    def late(*given, **more):
        # Another planning of it has the lock first.
        place.load(coming(20)).plan_tasks()
        return load(*given, **more)

    made._store.open = late

    assert spans(made.plan_tasks()) == [(0, 19)]
