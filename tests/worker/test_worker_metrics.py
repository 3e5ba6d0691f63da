"""The values of `ShareWorker.metrics()`, on the embedded broker and a virtual clock."""

import time
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from sharecons import DeadLetter, Record, Reject, RetryPolicy, RetryTopic, ShareWorker
from sharecons.histogram import Histogram
from sharecons.net.io.event_loop import running_clock
from sharecons.testing import EmbeddedBroker
from sharecons.worker.machine import window
from sharecons.worker.machine.meters import Meters
from sharecons.worker.metrics import WORKER_METRICS
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import Handled, settled, working

pytestmark = pytest.mark.anyio

START = 1_700_000_000.0
"""The time of the wall clock when a test starts."""

SLOW = RetryPolicy(max_attempts=3, initial=0.5, maximum=0.5, jitter=0.0)


@pytest.fixture
async def wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the wall clock follow the virtual one."""
    clock = running_clock()
    monkeypatch.setattr(time, "time", lambda: START + clock())


def value(worker: ShareWorker[Any, Any], name: str, *labels: str) -> Any:
    """Return a value of a metric whose name lacks the prefix; None if it has none."""
    full_name: Any = f"sharecons_worker_{name}"
    return worker.metrics()[full_name].get(labels)


def buckets(histogram: Histogram) -> dict[float, int]:
    """Return the counts of the buckets with values, by their upper bounds."""
    bounds = (*histogram.bounds, float("inf"))
    pairs = zip(bounds, histogram.counts, strict=True)
    return {bound: count for bound, count in pairs if count}


def outcomes(worker: ShareWorker[Any, Any], topic: str = "orders") -> dict[str, int]:
    """Return the outcomes that were counted, by name."""
    found = worker.metrics()["sharecons_worker_outcomes_total"]
    counts = {labels[1]: n for labels, n in found.items() if labels[0] == topic}
    return {name: int(n) for name, n in counts.items() if n}  # type: ignore[arg-type]


async def test_times_of_accepted_records_are_in_histograms(
    broker: MemoryBroker, wall_clock: None
) -> None:
    broker.produce("orders", [b"x"] * 3, timestamp=int((START - 100.0) * 1000))
    handled = Handled(lambda record: anyio.sleep(2.0))

    async with working(broker, handled) as worker:
        await until(lambda: handled.running == 3)
        began = anyio.current_time()
        assert 3 == value(worker, "records_held") == value(worker, "records_running")
        assert {} == outcomes(worker)
        await until(lambda: settled(broker, 3))

        assert {"accepted": 3} == outcomes(worker)
        durations = value(worker, "handler_duration_seconds", "orders", "accepted")
        assert {2.5: 3} == buckets(durations)
        assert 6.0 == pytest.approx(durations.sum)
        queue_times = value(worker, "queue_time_seconds", "orders")
        assert {300.0: 3} == buckets(queue_times)
        assert 3 * (100.0 + began) == pytest.approx(queue_times.sum, abs=0.1)
        lock_times = value(worker, "lock_time_left_seconds", "orders")
        assert {30.0: 3} == buckets(lock_times), "of 30 s"
        assert 3 * 28.0 == pytest.approx(lock_times.sum, abs=0.2)
        deliveries = value(worker, "record_deliveries", "orders")
        assert ({1.0: 3}, 3.0) == (buckets(deliveries), deliveries.sum)
        assert 0 == value(worker, "last_deliveries_total", "orders")
        assert 0 == value(worker, "records_held") == value(worker, "records_running")


async def test_acknowledgement_latency_is_the_time_until_the_response(
    embedded: EmbeddedBroker,
) -> None:
    embedded.produce("orders", [b"x"])
    embedded.faults.on("ShareAcknowledge").delay(0.2)
    embedded.faults.on(
        "ShareFetch", where=lambda request, _: has_acknowledgements(request)
    ).delay(0.2)

    async with working(embedded, Handled()) as worker:
        assert 0 == value(worker, "acknowledgement_latency_seconds").count
        await until(lambda: value(worker, "acknowledgement_latency_seconds").count == 1)

        latencies = value(worker, "acknowledgement_latency_seconds")
        assert 0.2 <= latencies.sum < 0.5


def has_acknowledgements(request: Any) -> bool:
    return any(
        partition.acknowledgement_batches
        for topic in request.topics
        for partition in topic.partitions
    )


async def test_failures_are_counted_by_outcome_and_cause(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"1", b"2", b"3", b"4", b"not a number"])
    failed: list[int] = []

    async def handle(record: Record[bytes, int]) -> None:
        await anyio.sleep(0.02)
        match record.value:
            case 1:
                raise Reject("old")
            case 2:
                raise DeadLetter("strange")
            case 3:
                raise ValueError("bad")
            case 4 if not failed:
                failed.append(4)
                raise TimeoutError("slow")

    async with working(
        broker, handle, retry=SLOW, value_deserializer=int, dead_letter="orders.dead"
    ) as worker:
        await until(lambda: value(worker, "records_waiting_in_place") == 2)
        assert 0 == value(worker, "records_waiting_in_retry_topics")
        await until(lambda: settled(broker, 5))

        expected = {"accepted": 1, "rejected": 1, "retried": 3, "dead_lettered": 3}
        assert expected == outcomes(worker)
        causes = ("decision", "error", "deserialization", "last_delivery")
        assert [1, 1, 1, 0] == [
            value(worker, "dead_letters_total", "orders", cause) for cause in causes
        ]
        assert 1 == value(worker, "deserialization_errors_total", "orders")
        for outcome, count in {**expected, "dead_lettered": 2}.items():
            times = value(worker, "handler_duration_seconds", "orders", outcome)
            assert {0.025: count} == buckets(times), outcome
        assert 0 == value(worker, "records_waiting_in_place")
        # All of them were acknowledged, and so have left the queue.
        assert 5 == value(worker, "record_deliveries", "orders").count
        assert 5 == value(worker, "lock_time_left_seconds", "orders").count


async def test_moved_record_waits_in_its_retry_topic(
    broker: MemoryBroker, wall_clock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Records wait in place within ten offsets only.
    monkeypatch.setattr(window, "USABLE", 10 / window.DEFAULT_WINDOW)
    broker.produce("orders", [b"%d" % number for number in range(100)])

    async def fail_once(record: Record[Any, Any]) -> None:
        if record.value == b"50" and record.topic == "orders":
            raise TimeoutError("slow")

    topics = [RetryTopic("orders.retry", 0.5)]
    async with working(broker, fail_once, retry=SLOW, retry_topics=topics) as worker:
        await until(lambda: value(worker, "records_waiting_in_retry_topics") == 1)
        assert 0 == value(worker, "records_waiting_in_place")
        assert 1 == value(worker, "moved_total", "orders", "orders.retry")
        await until(lambda: value(worker, "records_held") == 0)

        assert {"accepted": 99, "moved": 1} == outcomes(worker)
        assert {"accepted": 1} == outcomes(worker, "orders.retry")
        assert 100 == value(worker, "queue_time_seconds", "orders").count
        second = value(worker, "queue_time_seconds", "orders.retry")
        assert second is None or second.count == 0, (
            "its first attempt was at the source"
        )


async def test_lost_locks_and_last_deliveries_are_counted(
    broker: MemoryBroker,
) -> None:
    broker.set_group_config("billing", {"share.delivery.count.limit": 2})
    broker.produce("orders", [b"a"])
    handled = Handled(lambda record: anyio.sleep_forever())

    async with working(broker, handled, dead_letter="orders.dead") as worker:
        for delivery in (1, 2):
            await until(lambda count=delivery: len(handled.calls) == count)
            assert delivery - 1 == value(worker, "last_deliveries_total", "orders")
            broker.faults.on("ShareFetch").hang_up()
            await until(
                lambda count=delivery: (
                    value(worker, "locks_lost_total", "orders") == count
                )
            )
        await until(
            lambda: value(worker, "dead_letters_total", "orders", "last_delivery") == 1
        )

        assert {"lock_lost": 2} == outcomes(worker)
        assert 0 == value(worker, "record_deliveries", "orders").count


async def test_record_that_was_released_before_has_two_deliveries_and_no_queue_time(
    broker: EmbeddedBroker,
) -> None:
    broker.set_group_config("billing", {"share.delivery.count.limit": 2})
    broker.produce("orders", [b"a"])
    hanging = Handled(lambda record: anyio.sleep_forever())
    async with working(broker, hanging, shutdown_grace=0.0) as first:
        await until(lambda: hanging.calls)

    async with working(broker, Handled()) as second:
        await until(lambda: settled(broker, 1))

    assert ({"released": 1}, {"accepted": 1}) == (outcomes(first), outcomes(second))
    deliveries = value(second, "record_deliveries", "orders")
    assert (1, 2.0) == (deliveries.count, deliveries.sum)
    assert 1 == value(second, "last_deliveries_total", "orders")
    assert 0 == value(second, "queue_time_seconds", "orders").count


@pytest.mark.slow("40 virtual seconds of requests")
async def test_renewals_are_those_of_the_consumer(embedded: EmbeddedBroker) -> None:
    embedded.produce("orders", [b"a"])
    handled = Handled(lambda record: anyio.sleep(40.0))

    async with working(embedded, handled, within=90.0) as worker:
        await until(lambda: settled(embedded, 1), within=60.0, pause=1.0)

        renewals = value(worker, "renewals_total")
        assert renewals >= 2
        assert worker.consumer_metrics()["sharecons-renewals-total"] == renewals
        times = value(worker, "handler_duration_seconds", "orders", "accepted")
        assert {60.0: 1} == buckets(times)


async def test_dead_letter_that_is_not_confirmed_is_being_written(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"a"])

    async def refuse(record: Record[Any, Any]) -> None:
        raise DeadLetter("strange")

    fault = broker.faults.on("Produce", times=None).refuse("NOT_ENOUGH_REPLICAS")
    async with working(broker, refuse, dead_letter="orders.dead") as worker:
        await until(lambda: value(worker, "dead_letters_being_written") == 1)
        assert 0 == value(worker, "dead_letters_total", "orders", "decision")
        assert {"dead_lettered": 1} == outcomes(worker)
        fault.undo()
        await until(lambda: settled(broker, 1))

        assert 0 == value(worker, "dead_letters_being_written")
        assert 1 == value(worker, "dead_letters_total", "orders", "decision")


async def test_record_released_at_the_end_is_not_finished(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"a"])
    handled = Handled(lambda record: anyio.sleep_forever())

    async with working(broker, handled, shutdown_grace=0.5) as worker:
        await until(lambda: handled.running == 1)

    assert {"released": 1} == outcomes(worker)
    assert 1 == value(worker, "lock_time_left_seconds", "orders").count
    assert 0 == value(worker, "record_deliveries", "orders").count


@dataclass
class Timed:
    timestamp: int


async def test_queue_time_is_not_negative_and_missing_without_a_time() -> None:
    meter = Meters().of_topic("orders")
    for timestamp in (-1, 0, 5_000, 9_000):
        meter.on_first_attempt(Timed(timestamp), started=8.0)

    assert (3, 11.0) == (meter.queue_times.snapshot().count, meter.queue_times.sum)


async def test_metrics_that_are_not_collected_are_empty(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"a"])

    async with working(broker, Handled(), collect_metrics=False) as worker:
        await until(lambda: settled(broker, 1))

        assert {name: {} for name in WORKER_METRICS} == worker.metrics()


async def test_worker_that_has_not_started_has_all_its_gauges() -> None:
    worker = ShareWorker("orders", Handled(), group_id="billing")

    found = worker.metrics()

    assert list(WORKER_METRICS) == list(found)
    for name, metric in WORKER_METRICS.items():
        if metric.kind == "gauge":
            assert {(): 0} == found[name]
