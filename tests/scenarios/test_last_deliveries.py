"""Last deliveries that end before a handler has the record: it becomes a dead letter.

Each of these causes was found by `test_worker_audit`.
"""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from sharecons import DeadLetterQueue, Record, ShareConsumer, ShareWorker
from sharecons.testing import EmbeddedBroker, OffsetState
from sharecons.testing.pytest_plugin import SETTINGS
from sharecons.testing.virtual_time import Backend
from tests.net.embedded import SlowNetwork
from tests.waiting import until

pytestmark = pytest.mark.anyio

GROUP = "billing"
DEAD = DeadLetterQueue("orders.dead")


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        for topic in ("orders", "orders.dead"):
            broker.create_topic(topic)
        config = {
            "share.auto.offset.reset": "earliest",
            "share.delivery.count.limit": 2,
        }
        broker.set_group_config(GROUP, config)
        yield broker


def new_consumer(broker: EmbeddedBroker, **options: Any) -> ShareConsumer[Any, Any]:
    return ShareConsumer(
        "orders",
        group_id=GROUP,
        bootstrap_servers=broker.bootstrap_servers,
        network=SlowNetwork(broker),
        **options,
    )


def new_worker(
    broker: EmbeddedBroker, handler: Any, **options: Any
) -> ShareWorker[Any, Any]:
    return ShareWorker(
        "orders",
        handler,
        group_id=GROUP,
        bootstrap_servers=broker.bootstrap_servers,
        network=SlowNetwork(broker),
        dead_letter=DEAD,
        **options,
    )


async def test_release_of_an_ended_lock_keeps_the_next_delivery_locked(
    broker: EmbeddedBroker,
) -> None:
    """The release waits behind a fetch that acquires the record again."""
    broker.set_group_config(GROUP, {"share.record.lock.duration.ms": 1000})
    broker.produce("orders", [b"a"])
    received: list[Record[Any, Any]] = []

    async def poll() -> None:
        received.extend(await consumer.poll(timeout=5.0))

    consumer = new_consumer(broker, acknowledgement="explicit")
    async with consumer, anyio.create_task_group() as tasks:
        await poll()
        tasks.start_soon(poll)
        await anyio.sleep(received[0].lock_remaining - 0.0005)
        received[0].release()
        await until(lambda: len(received) == 2)
        await anyio.sleep(0.1)
        locked = delivery_counts(broker)

    assert [2] == locked


async def test_last_delivery_that_arrives_after_stop_now_is_a_dead_letter(
    broker: EmbeddedBroker,
) -> None:
    broker.produce("orders", [b"a"])

    async def hang(record: Record[Any, Any]) -> None:
        await anyio.sleep_forever()

    for delivery in (1, 2):
        worker = new_worker(broker, hang)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            broker.faults.on("ShareFetch", times=None).delay(0.2)
            await until(lambda count=delivery: [count] == delivery_counts(broker))
            worker.stop_now()
        broker.faults.clear()

    assert 1 == broker.group(GROUP).partition("orders").start_offset, "archived"
    assert 1 == len(broker.records("orders.dead"))


async def test_dead_letters_that_are_not_confirmed_delay_the_end_once(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """One is of a handler that is cancelled, the other arrives afterwards."""
    broker.produce("orders", [b"a", b"b"], batch=1)

    async def hang(record: Record[Any, Any]) -> None:
        await anyio.sleep_forever()

    broker.faults.on("ShareFetch", times=None).delay(0.2)
    for delivery in (1, 2):
        worker = new_worker(broker, hang, max_records=1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            await until(lambda count=delivery: [count] * 2 == delivery_counts(broker))
            if delivery == 2:
                broker.faults.on("Produce", times=None).lose()
            running, began = worker.stats.running, anyio.current_time()
            worker.stop_now()

    assert running == 1
    assert anyio.current_time() - began < 6.5
    assert 2 == caplog.text.count("dead letter not written before the worker ended")


async def test_limit_that_is_lowered_makes_released_records_dead_letters(
    broker: EmbeddedBroker,
) -> None:
    broker.set_group_config(GROUP, {"share.delivery.count.limit": 5})
    broker.produce("orders", [b"a"])

    async def hang(record: Record[Any, Any]) -> None:
        await anyio.sleep_forever()

    for delivery in (1, 2):
        worker = new_worker(broker, hang)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            await until(lambda count=delivery: [count] == delivery_counts(broker))
            await anyio.sleep(1.0)
            if delivery == 2:
                limit = {"share.delivery.count.limit": 2}
                broker.set_group_config(GROUP, limit)
            worker.stop_now()

    assert 1 == len(broker.records("orders.dead"))


def delivery_counts(broker: EmbeddedBroker) -> list[int]:
    """Return how often the records in flight were delivered, if they are acquired."""
    try:
        partition = broker.group(GROUP).partition("orders")
    except LookupError:
        return []
    return [
        each.delivery_count
        for each in partition.in_flight
        if each.state == OffsetState.ACQUIRED
    ]
