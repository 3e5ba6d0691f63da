"""The driver: its member and its ledger, on the embedded broker."""

import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sharecons.errors import BrokerError, ClosedError, ConnectionFailedError
from sharecons.spark.errors import (
    LedgerError,
    LedgerLostError,
    LedgerMismatchError,
    LedgerTakenError,
)
from sharecons.spark.factory import OpenedDriver, open_driver
from sharecons.spark.options import read_options
from sharecons.spark.store import Store
from sharecons.spark.stream import StreamQuery
from sharecons.spark.watch import GroupWatch
from tests.spark.broker_requests import count_requests, wait_for_requests
from tests.waiting import until_true

GROUP = "billing"


@pytest.fixture
def broker(share_broker):
    share_broker.create_topic("orders", partitions=2)
    share_broker.set_group_config(GROUP, {"share.auto.offset.reset": "earliest"})
    return share_broker


@pytest.fixture
def options(broker, tmp_path):
    def make(**more):
        given = {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "subscribe": "orders",
            "kafka.share.group.id": GROUP,
            "ledgerLocation": str(tmp_path / "ledger"),
            # Stopping waits for the fetch that the broker holds.
            "kafka.fetch.max.wait.ms": "50",
            "maxOffsetsAhead": "1000000",
        } | more
        return read_options({name: v for name, v in given.items() if v is not None})

    return make


@pytest.fixture
def start_driver():
    """Starts drivers, and stops them after the test."""
    drivers = []

    def start(options):
        driver = open_driver(options).driver
        drivers.append(driver)
        driver.mark_planned(driver.begin)  # as Spark's first call
        return driver

    yield start
    for driver in drivers:
        driver.stop()


def ledger_offsets(driver):
    """Return partition, offset and delivery count of each offset in the ledger."""
    return [
        (each.partition, offset, each.delivery_count)
        for each in driver.ranges_between(driver.begin, driver.end)
        for offset in range(each.first_offset, each.last_offset + 1)
    ]


def produce(broker, count, partition=0):
    broker.produce("orders", [b"x"] * count, partition=partition)


def test_acquired_records_are_in_the_ledger_and_accepted(broker, options, start_driver):
    produce(broker, 30)
    produce(broker, 20, partition=1)
    driver = start_driver(options())

    until_true(lambda: driver.end == 50)
    assert sorted(ledger_offsets(driver)) == [
        *((0, offset, 1) for offset in range(30)),
        *((1, offset, 1) for offset in range(20)),
    ]
    driver.stop()
    after = start_driver(options())
    # Records that were not accepted would be acquired before these.
    for partition in (0, 1):
        produce(broker, 1, partition)
    until_true(lambda: after.end == 52)
    assert after.stats()["acquired"] == 2
    # A batch of one record without a key has more than 60 bytes.
    assert after.stats()["acquired_bytes"] > 60


@pytest.mark.parametrize("point", ["before write", "after write", "accepted"])
def test_driver_reaches_the_points_at_which_other_tests_kill_it(
    broker, options, start_driver, monkeypatch, point
):
    pytest.importorskip("pyspark", reason="needs sharecons[spark]")
    from tests.spark import faults

    owner, name, when = faults.POINTS[point]
    for each in {name, "has_ack_callback"} & vars(owner).keys():
        monkeypatch.setattr(owner, each, vars(owner)[each])  # restored after the test
    reached = threading.Event()
    faults.kill_at(owner, name, when, 1, kill=reached.set)
    produce(broker, 30)
    driver = start_driver(options())
    is_reached = reached.wait(10)
    driver.stop()  # before the method is restored

    assert is_reached


def test_wait_beyond_returns_when_records_arrive(broker, options, start_driver):
    driver = start_driver(options())
    produce(broker, 5)

    # The test has a shorter timeout than these calls.
    assert driver.wait_beyond(0, 1000) == 5
    threading.Timer(0.1, produce, [broker, 3]).start()
    assert driver.wait_beyond(5, 1000) == 8


def test_wait_beyond_returns_after_its_timeout(options, start_driver):
    driver = start_driver(options())
    began = time.monotonic()

    assert driver.wait_beyond(0, 0.1) == 0
    assert 0.09 < time.monotonic() - began < 1


def test_records_are_not_accepted_if_the_write_fails(
    broker, options, start_driver, monkeypatch
):
    produce(broker, 10)

    def fail(store, segment):
        raise LedgerTakenError("another driver")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "append", fail)
        driver = start_driver(options())
        with pytest.raises(LedgerTakenError):
            driver.wait_beyond(0, 10)
        driver.stop()

    again = start_driver(options())
    assert again.wait_beyond(0, 40) == 10
    # The first driver released them when its connection closed.
    assert {count for _, _, count in ledger_offsets(again)} == {2}


def test_driver_that_fails_before_accepting_loses_and_repeats_nothing(
    broker, options, start_driver, monkeypatch
):
    produce(broker, 10)
    append = Store.append

    def die(store, segment):
        append(store, segment)
        raise LedgerTakenError("simulated kill")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "append", die)
        driver = start_driver(options())
        with pytest.raises(LedgerTakenError):
            driver.wait_beyond(0, 10)
        driver.stop()

    again = start_driver(options())
    assert again.end == 10
    until_true(lambda: again.stats()["redelivered"] == 10, within=40)
    assert again.end == 10
    produce(broker, 1)
    assert again.wait_beyond(10, 10) == 11


def test_stop_uses_up_no_delivery(broker, options, start_driver):
    driver = start_driver(options(maxOffsetsAhead="100"))
    for _ in range(20):
        produce(broker, 100)
    until_true(lambda: driver.end > 0)
    driver.stop()

    after = start_driver(options())
    until_true(lambda: after.end == 2000)
    assert {count for _, _, count in ledger_offsets(after)} == {1}


def test_acquiring_pauses_at_max_offsets_ahead(broker, options, start_driver):
    for _ in range(40):
        produce(broker, 100)
    driver = start_driver(
        options(**{"maxOffsetsAhead": "500", "kafka.max.poll.records": "100"})
    )
    until_true(lambda: driver.end >= 500)
    wait_for_requests(broker, "ShareGroupHeartbeat", 4)

    assert driver.end < 1500
    waiting = driver.end
    driver.mark_planned(waiting)
    assert driver.wait_beyond(waiting, 5) > waiting


def test_fetch_fills_the_window_of_the_group(
    broker, options, start_driver, monkeypatch
):
    broker.set_group_config(GROUP, {"share.partition.max.record.locks": "4000"})
    sizes, append = [], Store.append

    def record(store, segment):
        sizes.append(sum(each.size for each in segment))
        append(store, segment)

    monkeypatch.setattr(Store, "append", record)
    fault = broker.faults.on("ShareFetch", times=None).refuse("KAFKA_STORAGE_ERROR")
    start_driver(options())
    wait_for_requests(broker, "DescribeConfigs", 1)  # the window is read
    for _ in range(50):
        produce(broker, 100)
        produce(broker, 100, partition=1)
    fault.undo()

    until_true(lambda: sizes)
    assert sizes[0] == 8000


class AdjustableClock:
    """The monotonic clock, plus the time for which `advance` was called."""

    def __init__(self):
        self.advanced = 0.0

    def monotonic(self):
        return time.monotonic() + self.advanced

    def advance(self, seconds):
        self.advanced += seconds


def test_available_now_continues_after_a_long_batch(
    broker, options, start_driver, monkeypatch
):
    clock = AdjustableClock()
    monkeypatch.setattr("sharecons.spark.driver.time", clock)
    for _ in range(20):
        produce(broker, 50)
    given = {"maxOffsetsAhead": "100", "idleTimeout": "10s"}
    driver = start_driver(options(**given, **{"kafka.max.poll.records": "50"}))
    query = StreamQuery(
        options(**given),
        opener=lambda *_: OpenedDriver(driver, "ledger"),
        clock=clock.monotonic,
    )
    query.end_when_drained()
    ends = [query.initial_offset()]
    while len(ends) < 3:
        ends.append(query.latest_offset(ends[-1], max_offsets=100, min_offsets=None))
        assert ends[-1]["position"] > ends[-2]["position"]
        # The batch runs for longer than idleTimeout, and the ledger gets full.
        until_true(lambda: driver.is_full)
        clock.advance(15)

    while ends[-1] != ends[-2]:
        ends.append(query.latest_offset(ends[-1], max_offsets=None, min_offsets=None))
    assert ends[-1]["position"] == 1000


def test_available_now_continues_if_the_end_of_a_long_batch_makes_room(
    broker, options, start_driver, monkeypatch
):
    clock = AdjustableClock()
    monkeypatch.setattr("sharecons.spark.driver.time", clock)
    produce(broker, 10_000)
    given = {"maxOffsetsAhead": None, "idleTimeout": "2s"}
    driver = start_driver(options(**given))
    query = StreamQuery(
        options(**given),
        opener=lambda *_: OpenedDriver(driver, "ledger"),
        clock=clock.monotonic,
    )
    query.end_when_drained()
    ends = [None, query.initial_offset()]
    while ends[-1] != ends[-2]:
        ends.append(query.latest_offset(ends[-1], max_offsets=None, min_offsets=None))
        until_true(lambda: driver.is_full or driver.end == 10_000)
        # Longer than idleTimeout, but short enough for larger batches.
        clock.advance(5)

    assert ends[-1]["position"] == 10_000


@pytest.mark.parametrize("code", ["UNKNOWN_SERVER_ERROR", "KAFKA_STORAGE_ERROR"])
@pytest.mark.parametrize("of_partitions", [False, True])
def test_available_now_fails_if_the_last_fetches_were_rejected(
    broker, options, start_driver, code, of_partitions
):
    produce(broker, 10)
    fault = broker.faults.on("ShareFetch", times=None)
    fault = fault.refuse_partitions(code) if of_partitions else fault.refuse(code)
    given = {"idleTimeout": "1s"}
    driver = start_driver(options(**given))
    query = StreamQuery(
        options(**given), opener=lambda *_: OpenedDriver(driver, "ledger")
    )
    query.end_when_drained()
    begin = query.initial_offset()
    with pytest.raises(BrokerError, match=f"{code}.*read the log|{code}.*disks"):
        query.latest_offset(begin, max_offsets=None, min_offsets=None)
    fault.undo()

    until_true(lambda: driver.end == 10)
    assert driver.can_finish()


def test_trim_drops_committed_ranges_only(broker, options, start_driver):
    produce(broker, 10)
    driver = start_driver(options())
    until_true(lambda: driver.end == 10)
    driver.trim(7)

    until_true(lambda: driver.begin == 7)
    assert [offset for _, offset, _ in ledger_offsets(driver)] == [7, 8, 9]
    driver.trim(3)
    driver.stop()
    assert driver.begin == 7


def test_trim_does_not_wait_for_the_ledger(broker, options, start_driver, monkeypatch):
    produce(broker, 10)
    begins, goes_on, trim = threading.Event(), threading.Event(), Store.trim

    def wait(store, ledger):
        begins.set()
        assert goes_on.wait(20)
        trim(store, ledger)

    monkeypatch.setattr(Store, "trim", wait)
    driver = start_driver(options())
    until_true(lambda: driver.end == 10)
    driver.trim(10)  # returns while the entry is written

    assert begins.wait(20)
    goes_on.set()
    driver.stop()
    assert start_driver(options()).begin == 10


def test_stopping_driver_trims_what_was_committed_last(
    broker, options, start_driver, monkeypatch
):
    produce(broker, 10)
    driver = start_driver(options())
    until_true(lambda: driver.end == 10)
    driver.leave_group()
    driver.trim(10)
    driver.stop()

    assert start_driver(options()).begin == 10


def test_query_ends_if_its_ledger_cannot_be_trimmed(
    broker, options, start_driver, monkeypatch
):
    produce(broker, 10)

    def fail(store, ledger):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(Store, "trim", fail)
    driver = start_driver(options())
    until_true(lambda: driver.end == 10)
    driver.trim(10)

    with pytest.raises(LedgerError, match="disk is full"):
        driver.wait_beyond(10, 20)


def test_entries_are_removed_after_a_commit(broker, options, start_driver):
    kept = Path(options().ledger_location)
    driver = start_driver(options())
    for number in range(1, 4):
        produce(broker, 10)
        until_true(lambda end=number * 10: driver.end == end)
    before = len(list(kept.glob("*.jsonl")))
    driver.trim(30)

    # Only the snapshot is left.
    assert before >= 4
    until_true(lambda: len(list(kept.glob("*.jsonl"))) == 1)


def test_second_driver_on_a_ledger_is_rejected(options, start_driver, monkeypatch):
    monkeypatch.setattr("sharecons.spark.factory.TAKEOVER_TIMEOUT", 0.2)
    start_driver(options())

    with pytest.raises(LedgerTakenError):
        open_driver(options())


def test_ledger_is_unlocked_when_its_driver_has_ended(options, start_driver):
    start_driver(options()).stop()

    assert start_driver(options()).end == 0


def test_recreated_topic_is_an_error_unless_loss_is_allowed(
    broker, options, start_driver
):
    produce(broker, 10)
    driver = start_driver(options())
    until_true(lambda: driver.end == 10)
    driver.stop()
    broker.delete_topic("orders")
    broker.create_topic("orders", partitions=2)

    with pytest.raises(LedgerMismatchError) as caught:
        open_driver(options())
    assert "orders" in str(caught.value)
    assert start_driver(options(failOnDataLoss="false")).end == 10


def test_wait_after_request_stop_raises_closed_error(options, start_driver):
    driver = start_driver(options())
    driver.request_stop()

    with pytest.raises(ClosedError):
        driver.wait_beyond(0, 10)


def test_unreachable_cluster_is_named_in_the_error(options, unused_port):
    where = f"127.0.0.1:{unused_port}"
    given = {"kafka.bootstrap.servers": where, "kafka.request.timeout.ms": "500"}

    with pytest.raises(ConnectionFailedError) as caught:
        open_driver(options(**given))
    assert where in str(caught.value)


@pytest.fixture
def unused_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_target_is_reached_when_all_records_are_acquired(broker, options, start_driver):
    produce(broker, 30)
    produce(broker, 20, partition=1)
    driver = start_driver(options())

    assert driver.target.expected_end == 50
    until_true(lambda: driver.target.is_reached)
    assert driver.end == 50


def test_acquiring_continues_after_a_leader_has_restarted(
    broker, options, start_driver, caplog
):
    produce(broker, 5)
    driver = start_driver(options())
    until_true(lambda: driver.end == 5)
    broker.stop_broker(1)
    until_true(lambda: "unreachable, retrying" in caplog.text)
    broker.start_broker(1)
    produce(broker, 5)

    until_true(lambda: driver.end == 10, within=20)
    assert [offset for _, offset, _ in ledger_offsets(driver)] == list(range(10))


def test_record_that_arrives_during_stop_is_in_the_ledger(
    broker, options, start_driver
):
    produce(broker, 5)
    driver = start_driver(options(**{"kafka.fetch.max.wait.ms": "1000"}))
    until_true(lambda: driver.end == 5)
    # The broker holds the second fetch for a second.
    until_true(lambda: count_requests(broker, "ShareFetch") >= 2)
    driver.request_stop()
    produce(broker, 7)
    driver.stop()

    after = start_driver(options())
    until_true(lambda: after.end == 12)
    assert {count for _, _, count in ledger_offsets(after)} == {1}


def test_driver_ends_with_its_parent_process(
    broker, options, start_driver, monkeypatch, tmp_path
):
    produce(broker, 5)
    given = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "subscribe": "orders",
        "kafka.share.group.id": GROUP,
        "ledgerLocation": str(tmp_path / "ledger"),
    }
    inner = f"""
from sharecons.spark.factory import open_driver
from sharecons.spark.options import read_options
driver = open_driver(read_options({given!r})).driver
driver.mark_planned(0)
print("open", driver.wait_beyond(0, 20), flush=True)
driver.wait_beyond(10**9, 60)
"""
    outer = f"""
import os, subprocess, sys
child = subprocess.Popen(
    [sys.executable, "-c", {inner!r}],
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
)
print(child.stdout.readline().strip(), flush=True)
os._exit(0)
"""
    command = [sys.executable, "-c", outer]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60)
    monkeypatch.setattr("sharecons.spark.factory.TAKEOVER_TIMEOUT", 15.0)

    assert ran.stdout == "open 5\n"
    began = time.monotonic()
    assert start_driver(options()).end == 5
    assert time.monotonic() - began < 15


def test_idle_driver_notices_a_newer_one_on_a_storage_without_locks(
    broker, options, start_driver, monkeypatch
):
    monkeypatch.setattr("sharecons.spark.driver_tasks.LEDGER_CHECK_INTERVAL", 0.2)
    monkeypatch.setattr(
        "sharecons.spark.local_storage.LocalStorage.lock", lambda *_: None
    )
    older = start_driver(options())
    newer = start_driver(options())

    with pytest.raises(LedgerTakenError, match="another driver took over"):
        older.wait_beyond(0, 10)
    older.stop()
    # The newer one has the same member id, and is still in the group.
    produce(broker, 5)
    assert newer.wait_beyond(0, 20) == 5
    assert older.end == 0


def test_nothing_is_acquired_before_the_position_of_the_query_is_known(broker, options):
    produce(broker, 10)
    driver = open_driver(options()).driver
    try:
        wait_for_requests(broker, "ShareGroupHeartbeat", 20)
        assert driver.stats()["acquired"] == 0
        driver.mark_planned(0)
        assert driver.wait_beyond(0, 20) == 10
    finally:
        driver.stop()


@pytest.mark.parametrize("deleted", ["directory", "entries"])
def test_deleted_ledger_stops_acquiring_and_its_records_are_read(
    broker, options, tmp_path, monkeypatch, caplog, deleted
):
    monkeypatch.setattr("sharecons.spark.driver_tasks.LEDGER_CHECK_INTERVAL", 0.05)
    produce(broker, 30)
    query = StreamQuery(options(maxOffsetsPerTrigger="10"))
    try:
        start = query.initial_offset()
        until_true(lambda: query.report_latest_offset()["position"] == 30)
        ledger = tmp_path / "ledger"
        if deleted == "directory":
            shutil.rmtree(ledger)
        else:
            for path in ledger.glob("*.jsonl"):
                path.unlink()
        until_true(lambda: "the ledger is lost" in caplog.text)
        produce(broker, 5)
        for _ in range(3):
            end = query.latest_offset(start, max_offsets=10, min_offsets=None)
            (task,) = query.plan_tasks(start, end)
            assert sum(each.size for each in task) == 10
            start = end
        with pytest.raises(LedgerLostError, match="was deleted while this query used"):
            query.latest_offset(start, max_offsets=10, min_offsets=None)
    finally:
        query.stop()
    assert "orders-0 offsets 0 to 29" in caplog.text
    # The rest is delivered to a new ledger.
    again = open_driver(options(ledgerLocation=str(tmp_path / "new"))).driver
    again.mark_planned(0)
    try:
        assert again.wait_beyond(0, 20) == 5
    finally:
        again.stop()


def test_start_offsets_are_not_applied_during_a_write(
    broker, options, start_driver, monkeypatch
):
    monkeypatch.setattr("sharecons.spark.watch.REFRESH_INTERVAL", 0.02)
    writes, goes_on, applied = threading.Event(), threading.Event(), []
    append, apply_lag = Store.append, GroupWatch.apply_lag

    def wait(store, segment):
        writes.set()
        applied.clear()
        assert goes_on.wait(20)
        append(store, segment)

    def record(watch, group_lag):
        applied.append(group_lag)
        apply_lag(watch, group_lag)

    monkeypatch.setattr(Store, "append", wait)
    monkeypatch.setattr(GroupWatch, "apply_lag", record)
    driver = start_driver(options())
    produce(broker, 5)
    assert writes.wait(20)
    wait_for_requests(broker, "ShareGroupHeartbeat", 3)

    assert applied == []
    goes_on.set()
    until_true(lambda: applied and driver.end == 5)
