"""A worker's metrics on real and embedded brokers, whose locks and deliveries count."""

from typing import Any

import anyio
import pytest

from sharecons import Record, Reject
from sharecons.histogram import Histogram
from tests.kafka_plugin import Admin
from tests.scenarios.queue import Queue
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.slow("waits for a real group")]

LOCK = 15.0


async def test_histograms_agree_with_what_the_broker_did(admin: Admin) -> None:
    """Ten records: one is rejected, one is delivered twice, the last time."""
    queue = Queue(
        admin,
        **{
            "share.delivery.count.limit": "2",
            "share.record.lock.duration.ms": str(round(LOCK * 1000)),
        },
    )
    queue.produce([b"%d" % number for number in range(10)])
    first_run: list[Any] = []

    async def hang_with_one(record: Record[Any, Any]) -> None:
        first_run.append(record)
        await anyio.sleep_forever()

    async def handle(record: Record[Any, Any]) -> None:
        await anyio.sleep(0.05)  # real time: the broker's
        if record.value == b"9":
            raise Reject("old")

    first = queue.worker(
        hang_with_one,
        concurrency=1,
        max_records=1,
        acquire_mode="record_limit",
        shutdown_grace=0.0,
    )
    async with first:
        await until(lambda: first_run)
    second = queue.worker(handle)
    async with second:
        await until(lambda: sum(outcomes(second, queue.topic).values()) == 10, 30.0)
        latency = "sharecons_worker_acknowledgement_latency_seconds"
        await until(lambda: histogram(second, latency).count > 0)

    topic = queue.topic
    again = outcomes(first, topic)["released"]
    assert again >= 1
    deliveries = histogram(second, "sharecons_worker_record_deliveries", topic)
    assert (10, 10 + again) == (deliveries.count, deliveries.sum)
    last = second.metrics()["sharecons_worker_last_deliveries_total"]
    assert again == last[(topic,)]
    lock_times = histogram(second, "sharecons_worker_lock_time_left_seconds", topic)
    assert 10 == lock_times.count
    assert LOCK - 5.0 < lock_times.sum / 10 < LOCK
    queue_times = histogram(second, "sharecons_worker_queue_time_seconds", topic)
    assert 10 - again == queue_times.count, "first attempts of first deliveries"
    assert 0.0 < queue_times.sum / queue_times.count < 60.0
    assert {"accepted": 9, "rejected": 1} == outcomes(second, topic)
    latencies = histogram(second, latency)
    assert 0.0 < latencies.sum / latencies.count < 5.0


def outcomes(worker: Any, topic: str) -> dict[str, int]:
    """Return the outcomes that were counted, by name."""
    found = worker.metrics()["sharecons_worker_outcomes_total"]
    return {name: count for (_, name), count in found.items() if count}


def histogram(worker: Any, name: str, *labels: str) -> Histogram:
    found: Histogram = worker.metrics()[name][labels]
    return found
