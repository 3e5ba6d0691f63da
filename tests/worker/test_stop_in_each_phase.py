"""A worker ends within a second in each phase, even if brokers do not respond."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from sharecons import ShareWorker
from sharecons.testing import EmbeddedBroker
from tests.net.embedded import running
from tests.waiting import until
from tests.worker import working
from tests.worker.working import Handled, on_asyncio, on_real_clock

pytestmark = pytest.mark.anyio

BROKERS = ("embedded",)

WITHIN = 1.0

in_each_way = pytest.mark.parametrize("how", ["stop", "stop_now", "cancel"])

PHASES = {
    "connecting": "ApiVersions",
    "reading the config": "DescribeConfigs",
    "setting the config": "IncrementalAlterConfigs",
    "finding the coordinator": "FindCoordinator",
    "joining": "ShareGroupHeartbeat",
    "reading metadata": "Metadata",
    "fetching": "ShareFetch",
}
"""The requests whose responses the broker holds."""


def new_worker(
    broker: EmbeddedBroker, handler: Any, *, topic: str = "orders", **options: Any
) -> ShareWorker[Any, Any]:
    return working.new_worker(broker, topic, handler, max_wait=0.5, **options)


@contextmanager
def holding(broker: EmbeddedBroker, api: str) -> Iterator[Any]:
    """Hold the responses to all requests of this kind."""
    with broker.faults.on(api, times=None).stall() as fault:
        yield fault


def end(worker: ShareWorker[Any, Any], tasks: TaskGroup, how: str) -> None:
    if how == "cancel":
        tasks.cancel_scope.cancel()
    elif how == "stop":
        worker.stop()
    else:
        worker.stop_now()


@asynccontextmanager
async def ending(
    worker: ShareWorker[Any, Any], how: str, within: float = WITHIN
) -> AsyncIterator[TaskGroup]:
    """Run the worker; end it after the block, and check how long that takes."""
    began = anyio.current_time()
    with anyio.fail_after(600):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            yield tasks
            began = anyio.current_time()
            end(worker, tasks, how)
    assert anyio.current_time() - began <= within


@in_each_way
@pytest.mark.parametrize("phase", PHASES)
async def test_worker_whose_broker_does_not_respond_ends_within_a_second(
    broker: EmbeddedBroker, phase: str, how: str
) -> None:
    broker.produce("orders", [b"a"])
    handled = Handled()
    worker = new_worker(broker, handled, shutdown_grace=0.1)
    with holding(broker, PHASES[phase]) as fault:
        async with ending(worker, how):
            await until(lambda: fault.hits)

    assert [] == handled.calls
    assert 0 == worker.stats.held


@in_each_way
async def test_worker_without_an_assignment_ends_within_a_second(
    broker: EmbeddedBroker, how: str
) -> None:
    worker = new_worker(broker, Handled(), topic="nothing")
    async with ending(worker, how):
        await until(lambda: worker.connected)

    assert () == broker.group("billing").members


@in_each_way
@pytest.mark.parametrize("coordinator", ["responds", "hangs"])
async def test_worker_without_records_ends_within_a_second(
    broker: EmbeddedBroker, coordinator: str, how: str
) -> None:
    worker = new_worker(broker, Handled())
    async with ending(worker, how):
        await until(lambda: worker.assignment)
        if coordinator == "hangs":
            broker.faults.on("ShareGroupHeartbeat", times=None).stall()

    assert coordinator == "hangs" or () == broker.group("billing").members


@in_each_way
async def test_idle_worker_whose_broker_hangs_ends_within_a_second(
    broker: EmbeddedBroker, how: str
) -> None:
    broker.produce("orders", [b"a"])
    handled = Handled()
    worker = new_worker(broker, handled)
    async with ending(worker, how):
        await until(lambda: worker.stats.accepted == 1)
        await anyio.sleep(10.0)
        broker.faults.hang()


async def test_worker_with_a_hanging_broker_ends_soon_after_its_last_handler() -> None:
    async with running(brokers=2, partitions=2) as broker:
        handled = Handled(lambda record: anyio.sleep(20.0))
        worker = new_worker(broker, handled)
        async with ending(worker, "stop", within=20.0 + WITHIN):
            await until(lambda: len(worker.assignment) == 2)
            await anyio.sleep(5.0)
            broker.faults.hang(2)
            broker.produce("orders", [b"a"], partition=0)
            await until(lambda: handled.running == 1)


@pytest.mark.parametrize("how", ["stop_now", "cancel"])
@pytest.mark.parametrize("api", ["ShareFetch", "ShareAcknowledge"])
async def test_worker_that_drains_ends_immediately_when_it_is_to(
    broker: EmbeddedBroker, api: str, how: str
) -> None:
    broker.produce("orders", [b"a"])
    handled = Handled(lambda record: anyio.sleep(30.0))
    worker = new_worker(broker, handled, shutdown_grace=300.0)
    async with ending(worker, how):
        await until(lambda: handled.running == 1)
        broker.faults.on(api, times=None).stall()
        worker.stop()
        await anyio.sleep(60.0)


async def test_draining_ends_with_the_grace_period(broker: EmbeddedBroker) -> None:
    broker.produce("orders", [b"a"])
    handled = Handled(lambda record: anyio.sleep(600.0))
    worker = new_worker(broker, handled, shutdown_grace=20.0)
    async with ending(worker, "stop", within=20.5):
        await until(lambda: handled.running == 1)

    assert 1 == worker.stats.released


@pytest.mark.parametrize("how", ["stop", "stop_now"])
async def test_worker_that_was_stopped_before_its_start_sends_no_request(
    broker: EmbeddedBroker, how: str
) -> None:
    broker.produce("orders", [b"a"])
    broker.forget_requests()
    handled = Handled()
    worker = new_worker(broker, handled)
    getattr(worker, how)()
    await worker.run()

    assert [] == handled.calls
    assert [] == broker.requests


@on_real_clock
@in_each_way
async def test_worker_ends_within_a_second_where_no_broker_listens(how: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    worker = ShareWorker(
        "orders",
        Handled(),
        group_id="billing",
        bootstrap_servers=f"127.0.0.1:{port}",
    )
    async with ending(worker, how):
        await anyio.sleep(0.05)  # real time: the first attempts fail


@on_asyncio
@pytest.mark.parametrize("api", ["ApiVersions", "ShareGroupHeartbeat", "ShareFetch"])
async def test_cancelled_task_of_asyncio_ends_within_a_second(
    broker: EmbeddedBroker, api: str
) -> None:
    worker = new_worker(broker, Handled())
    with holding(broker, api) as fault:
        task = asyncio.create_task(worker.run())
        await until(lambda: fault.hits)
        began = anyio.current_time()
        task.cancel()
        await asyncio.wait([task])

    assert task.cancelled()
    assert anyio.current_time() - began <= WITHIN
