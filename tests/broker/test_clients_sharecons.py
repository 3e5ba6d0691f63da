"""sharecons' own ShareConsumer on the embedded broker, on both event loops."""

import sys
import time
from collections import Counter

import anyio
import anyio.to_thread
import pytest
from confluent_kafka import Producer

from sharecons import ShareConsumer
from sharecons.testing import EmbeddedBroker
from tests.broker.clients import TIMEOUT

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow("clients poll over sockets in real time"),
]

GROUP = "workers"
MANY = 100_000
LONGEST = 5.0  # seconds for MANY records on two cores, one of them the broker's


@pytest.fixture
def broker():
    with EmbeddedBroker(topics={"jobs": 4}) as broker:
        yield configure(broker)


def configure(broker):
    config = {
        "share.auto.offset.reset": "earliest",
        "share.assignment.interval.ms": 0,
    }
    broker.set_group_config(GROUP, config)
    return broker


def consumer(broker, **options):
    return ShareConsumer(
        "jobs", group_id=GROUP, bootstrap_servers=broker.bootstrap_servers, **options
    )


def produce(broker, numbers):
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 20}
    )
    for number in numbers:
        producer.produce("jobs", b"%d" % number)
        if not number % 1000:
            producer.poll(0)
    assert not producer.flush(TIMEOUT)


async def left_over(broker):
    """Return the records that the group would deliver to a new member."""
    found = []
    with anyio.move_on_after(0.6):
        async with consumer(broker, acknowledgement="explicit") as newcomer:
            async for record in newcomer:
                found.append(int(record.value))  # noqa: PERF401
    return found


@pytest.mark.slow("100,000 records")
@pytest.mark.parametrize("way", ["records", "batches", "explicit"])
async def test_hundred_thousand_records_take_seconds(broker, way, capsys):
    began = time.perf_counter()
    await anyio.to_thread.run_sync(produce, broker, range(MANY))
    produced = time.perf_counter()
    with anyio.fail_after(TIMEOUT):
        seen = await consume(broker, way)
    took = time.perf_counter() - produced
    with capsys.disabled():
        sys.stdout.write(f" {took:.2f} s, and {produced - began:.2f} s to produce ")

    assert dict.fromkeys(range(MANY), 1) == seen
    assert not await left_over(broker)
    assert took < LONGEST


async def consume(broker, way):
    seen = Counter()
    mode = "explicit" if way == "explicit" else "implicit"
    async with consumer(broker, acknowledgement=mode) as worker:
        if way == "batches":
            async for batch in worker.batches():
                seen.update(int(record.value) for record in batch)
                if len(seen) >= MANY:
                    batch.accept()
                    break
        else:
            async for record in worker:
                seen[int(record.value)] += 1
                if way == "explicit" or len(seen) >= MANY:
                    record.accept()
                if len(seen) >= MANY:
                    break
    return seen
