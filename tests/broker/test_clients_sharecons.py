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
from tests.waiting import until

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


@pytest.fixture
def cluster():
    with EmbeddedBroker(brokers=3, topics={"jobs": 6}) as cluster:
        yield configure(cluster)


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


@pytest.mark.slow("a broker restarts")
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


async def test_released_records_are_redelivered_and_rejected_ones_are_not(broker):
    await anyio.to_thread.run_sync(produce, broker, range(300))
    deliveries, done = Counter(), 0
    with anyio.fail_after(TIMEOUT):
        # Released records are delivered at the end of a waiting fetch.
        async with consumer(
            broker, acknowledgement="explicit", max_wait=0.05
        ) as worker:
            async for record in worker:
                number = int(record.value)
                deliveries[number] += 1
                assert deliveries[number] == record.delivery_count
                if number % 3 == 0:
                    record.accept()
                elif number % 3 == 1 and record.delivery_count < 3:
                    record.release()
                    continue
                else:
                    record.reject()
                done += 1
                if done == 300:
                    break

    assert {n: 3 if n % 3 == 1 else 1 for n in range(300)} == deliveries
    assert not await left_over(broker)


async def test_unprocessed_implicit_records_are_redelivered(broker):
    await anyio.to_thread.run_sync(produce, broker, range(10))
    with anyio.fail_after(TIMEOUT):
        async with consumer(broker) as worker:
            first = set()
            async for record in worker:
                first.add(int(record.value))
                if len(first) == 4:
                    break
        again = set(await left_over(broker))

    last = int(record.value)
    assert set(range(10)) == first | again
    assert {last} == first & again


async def test_three_consumers_share_the_records(cluster):
    seen, shares = Counter(), Counter()

    async def work(name):
        async with consumer(cluster, max_records=100) as worker:
            async for record in worker:
                seen[int(record.value)] += 1
                shares[name] += 1

    with anyio.fail_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(work, name)
            produced = 0
            while len(shares) < 3:
                new = range(produced, produced + 2_000)
                await anyio.to_thread.run_sync(produce, cluster, new)
                produced += 2_000
                await until(lambda total=produced: len(seen) == total)
            tasks.cancel_scope.cancel()

    assert dict.fromkeys(range(produced), 1) == seen


async def test_consumption_continues_while_a_broker_restarts(cluster):
    seen = set()

    async def work():
        async with consumer(cluster) as worker:
            async for record in worker:
                seen.add(int(record.value))

    async def until_seen(count):
        await until(lambda: len(seen) >= count)

    async def feed(numbers):
        await anyio.to_thread.run_sync(produce, cluster, numbers)

    with anyio.fail_after(2 * TIMEOUT):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(work)
            await feed(range(1_000))
            await until_seen(1_000)
            for node_id in (cluster.coordinator(GROUP), cluster.leader("jobs", 0)):
                first = len(seen)
                cluster.stop_broker(node_id)
                await feed(range(first, first + 1_000))
                await until_seen(first + 1_000)
                cluster.start_broker(node_id)
                await feed(range(first + 1_000, first + 2_000))
                await until_seen(first + 2_000)
            tasks.cancel_scope.cancel()

    assert set(range(5_000)) == seen
