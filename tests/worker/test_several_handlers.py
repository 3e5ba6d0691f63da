"""A worker with several handlers: each has its topics, and none waits for another."""

import time
from collections import Counter
from typing import Any

import anyio
import pytest

from sharecons import Handler, Record, Retry, RetryTopic
from sharecons.net.io.event_loop import running_clock
from sharecons.worker.machine import window
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.routes import route, working_routes

pytestmark = pytest.mark.anyio


def create(broker: MemoryBroker, *topics: str) -> None:
    for name in topics:
        broker.create_topic(name, partitions=1)


@pytest.mark.slow("10,000 records on a virtual clock")
async def test_handler_that_hangs_leaves_the_others_at_full_speed(
    broker: MemoryBroker,
) -> None:
    """Its two calls hang. It holds no more than these and the records of a fetch."""
    create(broker, "slow", "fast")
    broker.produce("slow", [b"slow"] * 5000, batch=10)
    broker.produce("fast", [b"fast"] * 10_000, batch=100)
    deliveries: Counter[tuple[str, int]] = Counter()

    async def hang(record: Record[Any, Any]) -> None:
        deliveries["slow", record.delivery_count] += 1
        await anyio.sleep(300.0)

    async def process(record: Record[Any, Any]) -> None:
        deliveries["fast", record.delivery_count] += 1
        await anyio.sleep(0.01)

    routes = {"slow": route(hang, concurrency=2), "fast": route(process)}
    async with working_routes(broker, routes, concurrency=12) as worker:
        await until(lambda: deliveries["fast", 1] > 0)
        began = anyio.current_time()
        await until(lambda: worker.stats.accepted == 10_000, within=60.0, pause=0.01)
        seconds = anyio.current_time() - began
        await anyio.sleep(100.0)  # longer than locks last without renewals
        held, acquired = worker.stats.held, broker.acquired("slow")

    assert seconds < 10.1, "ten calls of 10 ms at a time"
    assert {("slow", 1): 2, ("fast", 1): 10_000} == deliveries
    assert held <= 12 + 10, "its calls, and a fetch before the pace is known"
    assert held == len(acquired)
    assert {1} == {*acquired}


async def test_handler_that_goes_on_has_its_records_again(
    broker: MemoryBroker,
) -> None:
    """Its topic is fetched again, without another delivery of what it held."""
    create(broker, "slow", "fast")
    broker.produce("slow", [b"slow"] * 100, batch=1)
    broker.produce("fast", [b"fast"] * 100, batch=1)
    deliveries: Counter[tuple[str, int]] = Counter()
    goes_on = anyio.Event()

    async def wait(record: Record[Any, Any]) -> None:
        deliveries["slow", record.delivery_count] += 1
        await goes_on.wait()

    async def process(record: Record[Any, Any]) -> None:
        deliveries["fast", record.delivery_count] += 1

    routes = {"slow": route(wait, concurrency=2), "fast": route(process)}
    async with working_routes(broker, routes) as worker:
        await until(lambda: worker.stats.accepted == 100)
        await anyio.sleep(3.0)
        assert {("slow", 1): 2, ("fast", 1): 100} == deliveries
        goes_on.set()
        began = anyio.current_time()
        await until(lambda: worker.stats.accepted == 200, within=60.0)

    assert {("slow", 1): 100, ("fast", 1): 100} == deliveries
    assert anyio.current_time() - began < 1.0


@pytest.mark.parametrize("is_shared", [True, False])
async def test_record_of_a_retry_topic_returns_to_its_handler(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, is_shared: bool
) -> None:
    monkeypatch.setattr(window, "USABLE", 0.0)  # no failed record waits in place
    clock, start = running_clock(), time.time()
    monkeypatch.setattr(time, "time", lambda: start + clock())
    other = "later" if is_shared else "refunds.later"
    create(broker, "invoices", "refunds", "later", "refunds.later")
    calls: list[tuple[str, str]] = []

    def failing_once(name: str, retry_topic: str) -> Handler[Any, Any]:
        async def handle(record: Record[Any, Any]) -> None:
            calls.append((name, record.topic))
            if record.topic == name:
                raise Retry(after=0.5)

        return route(handle, retry_topics=[RetryTopic(retry_topic, 0.5)])

    routes = {
        "invoices": failing_once("invoices", "later"),
        "refunds": failing_once("refunds", other),
    }
    for name in routes:
        broker.produce(name, [b"failed"])
    async with working_routes(broker, routes) as worker:
        assert {"invoices", "refunds", "later", other} == {*worker.subscription}
        await until(lambda: worker.stats.accepted == 2, within=60.0)
        assert 2 == worker.stats.moved

    expected = {
        ("invoices", "invoices"): 1,
        ("invoices", "later"): 1,
        ("refunds", "refunds"): 1,
        ("refunds", other): 1,
    }
    assert expected == Counter(calls)
