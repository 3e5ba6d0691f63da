"""Three brokers: leaders that move, brokers that die and come back."""

import time
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from sharecons import ShareConsumer
from tests.kafka_plugin import Admin, Kafka

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.timeout(240),
]

PARTITIONS = 6
EACH = 1500


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Stream:
    """Values produced, and values consumed by two consumers of a group."""

    def __init__(self, admin: Admin) -> None:
        self.admin = admin
        self.topic = admin.create_topic(partitions=PARTITIONS, replication=3)
        self.group = f"group-{self.topic}"
        admin.set_group_config(self.group, {"share.auto.offset.reset": "earliest"})
        self.produced = 0
        self.seen: set[int] = set()

    def consumer(self) -> ShareConsumer[Any, Any]:
        return ShareConsumer(
            self.topic,
            group_id=self.group,
            bootstrap_servers=self.admin.bootstrap_servers,
            request_timeout=10,
        )

    async def consume(self, consumer: ShareConsumer[Any, Any]) -> None:
        async for record in consumer:
            self.seen.add(int(record.value))

    async def produce(self) -> None:
        numbers = range(self.produced, self.produced + EACH)
        self.produced += EACH
        await anyio.to_thread.run_sync(
            lambda: self.admin.produce(
                self.topic,
                [b"%d" % number for number in numbers],
                enable_idempotence=True,
                message_timeout_ms=60000,
            )
        )

    async def all_seen(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while len(self.seen) < self.produced:
            missing = self.produced - len(self.seen)
            assert time.monotonic() < end, f"{missing} of {self.produced} missing"
            await anyio.sleep(0.05)


async def consuming_through(stream: Stream, *events: Callable[[], Any]) -> None:
    """Two consumers work while records come and the events happen one by one."""
    async with stream.consumer() as one, stream.consumer() as other:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream.consume, one)
            tasks.start_soon(stream.consume, other)
            await stream.produce()
            await stream.all_seen(30)
            for event in events:
                async with anyio.create_task_group() as meanwhile:
                    meanwhile.start_soon(stream.produce)
                    meanwhile.start_soon(anyio.to_thread.run_sync, event)
                await stream.produce()
                # A leader that died holds its locks' records until the state is
                # loaded elsewhere; a coordinator likewise.
                await stream.all_seen(60)
            tasks.cancel_scope.cancel()

    assert stream.seen == set(range(stream.produced))


async def test_consumption_follows_leaders_that_move(
    admin3: Admin, kafka3: Kafka
) -> None:
    stream = Stream(admin3)

    def move_all(to: int) -> None:
        for partition in range(PARTITIONS):
            admin3.move_leader(stream.topic, partition, to)

    nodes = sorted(kafka3.cluster.brokers)
    await consuming_through(stream, *[lambda to=to: move_all(to) for to in nodes])


async def test_consumption_outlives_a_broker(admin3: Admin, kafka3: Kafka) -> None:
    stream = Stream(admin3)
    coordinator = admin3.group_coordinator(stream.group)
    victim = next(
        node for node in sorted(kafka3.cluster.brokers) if node != coordinator
    )

    await consuming_through(
        stream,
        lambda: kafka3.cluster.kill(victim),
        lambda: kafka3.cluster.start_broker(victim),
    )


async def test_consumption_outlives_the_coordinators_broker(
    admin3: Admin, kafka3: Kafka
) -> None:
    stream = Stream(admin3)
    coordinator = admin3.group_coordinator(stream.group)

    await consuming_through(
        stream,
        lambda: kafka3.cluster.kill(coordinator),
        lambda: kafka3.cluster.start_broker(coordinator),
    )
