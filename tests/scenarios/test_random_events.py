"""Consumers that come and go, and connections that are cut, at random moments.

On an embedded broker in virtual time; each seed is another course of events.
"""

import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
import pytest

from sharecons import Record, ShareConsumer
from sharecons.testing import EmbeddedBroker
from tests.net.embedded import SlowNetwork
from tests.waiting import until

pytestmark = pytest.mark.anyio

PARTITIONS = 3
COUNT = 300
SEEDS = pytest.mark.parametrize("seed", range(2))

AnyConsumer: TypeAlias = ShareConsumer[Any, Any]


@pytest.fixture
def anyio_backend(virtual_clock: Any) -> Any:
    return virtual_clock


@asynccontextmanager
async def running(*topics: str) -> AsyncIterator[EmbeddedBroker]:
    """Run two brokers; no delivery limit is reached."""
    settings = {
        "group.share.assignment.interval.ms": 0,
        "group.share.max.delivery.count.limit": 25,
    }
    async with EmbeddedBroker(brokers=2, settings=settings, listen=False) as broker:
        for topic in topics:
            broker.create_topic(topic, PARTITIONS)
            config = {
                "share.auto.offset.reset": "earliest",
                "share.delivery.count.limit": 25,
                # Members live for less than 5 s: they must learn what others left.
                "share.heartbeat.interval.ms": 500,
            }
            broker.set_group_config(f"group-{topic}", config)
        yield broker


def consuming(broker: EmbeddedBroker, topic: str, **options: Any) -> AnyConsumer:
    return ShareConsumer(
        topic,
        group_id=f"group-{topic}",
        bootstrap_servers=broker.bootstrap_servers,
        network=SlowNetwork(broker),
        **options,
    )


async def produce(broker: EmbeddedBroker, topic: str, chance: random.Random) -> None:
    for number in range(COUNT):
        partition = chance.randrange(PARTITIONS)
        broker.produce(topic, [b"%d" % number], partition=partition)
        await anyio.sleep(chance.random() / 10)


def is_settled(broker: EmbeddedBroker, topic: str) -> bool:
    partitions = [
        broker.group(f"group-{topic}").partition(topic, number)
        for number in range(PARTITIONS)
    ]
    return COUNT == sum(each.start_offset or 0 for each in partitions)


@SEEDS
async def test_consumers_that_come_and_go_receive_each_record_first_once(
    seed: int,
) -> None:
    chance = random.Random(seed)
    delivered: Counter[tuple[int, int, int]] = Counter()
    seen: Counter[tuple[int, int]] = Counter()

    async def read(consumer: AnyConsumer) -> None:
        async for record in consumer:
            delivered[record.partition, record.offset, record.delivery_count] += 1
            seen[record.partition, record.offset] += 1
            await anyio.sleep(chance.random() / 50)

    async def live_and_die(broker: EmbeddedBroker) -> None:
        while True:
            seconds = chance.uniform(0.2, 5.0)
            with anyio.move_on_after(seconds if chance.random() < 0.5 else 1000):
                async with consuming(broker, "orders") as consumer:
                    with anyio.move_on_after(seconds):
                        await read(consumer)

    async with running("orders") as broker, anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(live_and_die, broker)
        await produce(broker, "orders", chance)
        await until(lambda: is_settled(broker, "orders"), within=600)
        tasks.cancel_scope.cancel()

    assert len(seen) == COUNT
    again = {key: count for key, count in delivered.items() if count > 1}
    assert again == {}, "two deliveries with one delivery count"


class Stage:
    """Consumes a topic, and releases, rejects or leaves records at random.

    A record is rejected if its number is a multiple of 7.
    """

    def __init__(self, chance: random.Random, on_done: Callable[[bytes], None]) -> None:
        self._chance = chance
        self._on_done = on_done

    async def run(self, broker: EmbeddedBroker, topic: str) -> None:
        while True:
            async with consuming(broker, topic, acknowledgement="explicit") as consumer:
                async for record in consumer:
                    await anyio.sleep(self._chance.random() / 100)
                    if not self._handle(record):
                        break

    def _handle(self, record: Record[Any, Any]) -> bool:
        """Handle a record; return False to leave the group without settling it."""
        event = self._chance.random()
        if event < 0.02:
            return False
        if not record.held:
            return True
        if int(record.value) % 7 == 0:
            record.reject()
        elif event < 0.2:
            record.release()
        else:
            self._on_done(record.value)
            record.accept()
        return True


async def cut_connections(broker: EmbeddedBroker, chance: random.Random) -> None:
    apis = ["ShareFetch", "ShareAcknowledge", "ShareGroupHeartbeat", "Metadata"]
    while True:
        await anyio.sleep(chance.uniform(0.05, 1.0))
        fault = broker.faults.on(chance.choice(apis))
        fault.cut(after=chance.random() < 0.5)


@SEEDS
async def test_cut_connections_lose_no_record_between_two_stages(seed: int) -> None:
    chance = random.Random(seed)
    results: set[bytes] = set()
    async with running("orders", "results") as broker:
        first = Stage(chance, lambda value: _forward(broker, value))
        second = Stage(chance, results.add)
        async with anyio.create_task_group() as tasks:
            for stage, topic in ((first, "orders"), (second, "results")):
                for _ in range(2):
                    tasks.start_soon(stage.run, broker, topic)
            tasks.start_soon(cut_connections, broker, chance)
            await produce(broker, "orders", chance)
            expected = {b"%d" % number for number in range(COUNT) if number % 7}
            await until(lambda: results == expected, within=600)
            await until(lambda: is_settled(broker, "orders"), within=600)
            tasks.cancel_scope.cancel()

    assert results == expected


def _forward(broker: EmbeddedBroker, value: bytes) -> None:
    broker.produce("results", [value], partition=int(value) % PARTITIONS)
