"""Three brokers: leaders that move, and brokers that are killed and restarted."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import anyio.to_thread
import pytest

from sharecons import ShareConsumer
from tests.kafka_plugin import Admin, Kafka
from tests.scenarios.embedded_admin import ON_ASYNCIO
from tests.waiting import until

pytestmark = [
    pytest.mark.anyio,
    ON_ASYNCIO,
    pytest.mark.both_loops,
    pytest.mark.slow("brokers are killed and restarted"),
    pytest.mark.timeout(240),
]

PARTITIONS = 6
EACH = 1500


class Stream:
    """A topic whose produced and consumed values are recorded."""

    def __init__(self, admin: Admin) -> None:
        self.admin = admin
        self.topic = admin.create_topic(partitions=PARTITIONS, replication=3)
        self.group = f"group-{self.topic}"
        admin.set_group_config(self.group, {"share.auto.offset.reset": "earliest"})
        self.produced = 0
        self.consumed: set[int] = set()

    def consumer(self) -> ShareConsumer[Any, Any]:
        return ShareConsumer(
            self.topic,
            group_id=self.group,
            bootstrap_servers=self.admin.bootstrap_servers,
            request_timeout=10,
        )

    async def consume(self, consumer: ShareConsumer[Any, Any]) -> None:
        async for record in consumer:
            self.consumed.add(int(record.value))

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

    async def wait_for_all(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await until(lambda: len(self.consumed) == self.produced, within=seconds)
        missing = self.produced - len(self.consumed)
        assert not missing, f"{missing} of {self.produced} missing"


async def consume_during(stream: Stream, *events: Callable[[], Any]) -> None:
    """Run events one by one while records are produced and two consumers run."""
    async with stream.consumer() as one, stream.consumer() as other:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream.consume, one)
            tasks.start_soon(stream.consume, other)
            await stream.produce()
            await stream.wait_for_all(30)
            for event in events:
                async with anyio.create_task_group() as meanwhile:
                    meanwhile.start_soon(stream.produce)
                    meanwhile.start_soon(anyio.to_thread.run_sync, event)
                await stream.produce()
                # After a kill, locked records wait until the next leader or
                # coordinator has loaded the state.
                await stream.wait_for_all(60)
            tasks.cancel_scope.cancel()

    assert stream.consumed == set(range(stream.produced))


async def test_consumption_continues_when_leaders_move(
    admin3: Admin, kafka3: Kafka
) -> None:
    stream = Stream(admin3)

    def move_all(to: int) -> None:
        for partition in range(PARTITIONS):
            admin3.move_leader(stream.topic, partition, to)

    nodes = sorted(kafka3.cluster.brokers)
    await consume_during(stream, *[lambda to=to: move_all(to) for to in nodes])


async def test_consumption_continues_after_broker_is_killed(
    admin3: Admin, kafka3: Kafka
) -> None:
    stream = Stream(admin3)
    coordinator = admin3.group_coordinator(stream.group)
    killed = next(
        node for node in sorted(kafka3.cluster.brokers) if node != coordinator
    )

    await consume_during(
        stream,
        lambda: kafka3.cluster.kill(killed),
        lambda: kafka3.cluster.start_broker(killed),
    )


async def test_consumption_continues_after_coordinator_is_killed(
    admin3: Admin, kafka3: Kafka
) -> None:
    stream = Stream(admin3)
    coordinator = admin3.group_coordinator(stream.group)

    await consume_during(
        stream,
        lambda: kafka3.cluster.kill(coordinator),
        lambda: kafka3.cluster.start_broker(coordinator),
    )
