"""Handlers of several topics, each with settings of its own."""

import json
from typing import Any

import anyio
import pytest

from sharecons import (
    Handler,
    HandlerBatch,
    Record,
    RetryPolicy,
)
from sharecons.errors import ConfigurationError, ConsumerStateError
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import Handled, new_worker

pytestmark = pytest.mark.anyio


@pytest.fixture
def topics(broker: MemoryBroker) -> MemoryBroker:
    """Return a broker with the topics of two handlers."""
    for name in ("refunds", "refunds.dead", "refunds.retry"):
        broker.create_topic(name)
    return broker


async def charge(record: Record[Any, Any]) -> None:
    """Do nothing: a handler."""


async def test_each_topic_has_its_handler_deserializers_policy_and_dead_letters(
    topics: MemoryBroker,
) -> None:
    topics.produce("orders", [b'{"id": 1}', b"no JSON"])
    topics.produce("refunds", [b"2", b"3"])
    orders: list[Any] = []
    attempts: list[Any] = []

    async def on_order(record: Record[bytes, Any]) -> None:
        orders.append(record.value)

    async def on_refund(record: Record[bytes, int]) -> None:
        attempts.append(record.value)
        if record.value == 3:
            raise ValueError("no such order")

    worker = new_worker(
        topics,
        {
            "orders": Handler(
                on_order, value_deserializer=json.loads, dead_letter="orders.dead"
            ),
            "refunds": Handler(
                on_refund,
                value_deserializer=int,
                retry=RetryPolicy(max_attempts=2, initial=0.05),
                dead_letter="refunds.dead",
            ),
        },
    )
    async with worker:
        await until(lambda: worker.stats.dead_lettered == 2)
        await until(lambda: worker.stats.accepted == 2)

    assert [{"id": 1}] == orders
    assert [2, 3, 3] == sorted(attempts)
    assert [b"no JSON"] == [each.value for each in topics.records("orders.dead")]
    assert [b"3"] == [each.value for each in topics.records("refunds.dead")]


async def test_setting_that_a_handler_does_not_have_comes_from_the_worker(
    topics: MemoryBroker,
) -> None:
    topics.produce("orders", [b"1"])
    topics.produce("refunds", [b"2"])
    attempts: list[tuple[str, Any]] = []
    worker = new_worker(
        topics,
        value_deserializer=int,
        retry=RetryPolicy(max_attempts=3, initial=0.05),
        dead_letter="orders.dead",
    )

    @worker.handler("orders")
    async def on_order(record: Record[bytes, int]) -> None:
        attempts.append(("orders", record.value))
        raise ValueError("the worker's policy: three attempts")

    @worker.handler(
        "refunds", retry=RetryPolicy(max_attempts=1), value_deserializer=bytes
    )
    async def on_refund(record: Record[bytes, bytes]) -> None:
        attempts.append(("refunds", record.value))
        raise ValueError("its own policy: one attempt")

    async with worker:
        await until(lambda: worker.stats.dead_lettered == 2)

    assert [("orders", 1)] * 3 + [("refunds", b"2")] == sorted(attempts)
    assert 2 == len(topics.records("orders.dead"))


async def test_decorated_function_has_batches_as_its_decorator_says(
    topics: MemoryBroker,
) -> None:
    topics.produce("orders", [b"1", b"2", b"3"])
    sizes: list[int] = []
    worker = new_worker(topics)

    @worker.handler("orders", max_records=2, max_wait=0.5)
    async def write(batch: HandlerBatch[bytes, bytes]) -> None:
        sizes.append(len(batch))

    async with worker:
        await until(lambda: worker.stats.accepted == 3)

    assert [2, 1] == sizes


async def test_stop_on_error_of_one_handler_ends_the_worker(
    topics: MemoryBroker,
) -> None:
    topics.produce("refunds", [b"1"])

    async def fail(record: Record[Any, Any]) -> None:
        raise ValueError("stop")

    worker = new_worker(
        topics, {"orders": charge, "refunds": Handler(fail, stop_on_error=True)}
    )
    with anyio.fail_after(30), pytest.raises(ValueError, match="stop"):
        await worker.run()

    assert worker.handler_failed


async def test_paused_topic_is_not_handled_until_it_is_resumed(
    topics: MemoryBroker,
) -> None:
    orders, refunds = Handled(), Handled()
    worker = new_worker(topics, {"orders": orders, "refunds": refunds})
    async with worker:
        await worker.assigned()
        worker.pause("refunds")
        topics.produce("refunds", [b"1"])
        topics.produce("orders", [b"2"])
        await until(lambda: orders.calls == [b"2"])
        await anyio.sleep(2.0)
        assert ([], {"refunds"}) == (refunds.calls, worker.paused)
        worker.resume("refunds")
        await until(lambda: refunds.calls == [b"1"])
        with pytest.raises(ConfigurationError, match="does not consume it"):
            worker.pause("others")


@pytest.mark.slow("prefetching begins after 200 records")
async def test_worker_that_stops_processes_what_it_has_fetched_of_paused_topics(
    topics: MemoryBroker,
) -> None:
    """A release would use up a delivery."""
    topics.produce("orders", [b"x"] * 2000, batch=50)

    async def handle(record: Record[Any, Any]) -> None:
        await anyio.sleep(0.01)

    worker = new_worker(topics, "orders", handle, concurrency=1)
    with anyio.fail_after(60):
        async with worker:
            await until(lambda: worker.stats.accepted > 200)
            worker.pause("orders")
            await anyio.sleep(2.0)
            accepted = worker.stats.accepted
            withheld = len(topics.acquired("orders"))
            assert (0, True) == (worker.stats.held, withheld > 0)

    assert (accepted + withheld, 0) == (worker.stats.accepted, worker.stats.released)
    with pytest.raises(ConsumerStateError, match="the worker does not run"):
        worker.resume("orders")
