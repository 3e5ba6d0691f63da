"""`async with worker`: start, failures, cancellation and the end of its block."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from sharecons import ShareWorker
from sharecons.errors import BrokerError, ConsumerStateError
from sharecons.testing import EmbeddedBroker
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import Handled, new_worker, on_asyncio, settled

pytestmark = pytest.mark.anyio


async def hang(record: Any) -> None:
    await anyio.sleep_forever()


async def fail(record: Any) -> None:
    raise ValueError("bad order")


async def test_worker_runs_beside_the_block_and_stops_in_order_at_its_end(
    broker: MemoryBroker,
) -> None:
    async def handle(record: Any) -> None:
        await anyio.sleep(2.0)

    broker.produce("orders", [b"1"])
    handled = Handled(handle)
    async with new_worker(broker, "orders", handled) as worker:
        await until(lambda: handled.running == 1)
        assert worker.connected

    assert (1, 0) == (worker.stats.accepted, worker.stats.released)
    assert settled(broker, 1)
    assert not worker.connected


async def test_error_of_the_start_is_raised_before_the_block(
    embedded: EmbeddedBroker,
) -> None:
    worker = new_worker(embedded, "orders", Handled(), dead_letter="orders.missing")
    entered = False
    with pytest.raises(BrokerError, match=r"orders\.missing"):
        async with worker:
            entered = True

    assert not entered
    with pytest.raises(ConsumerStateError, match="create another ShareWorker"):
        await worker.run()


async def test_failure_cancels_the_block_and_is_raised_without_a_group(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"1"])
    cancelled = False
    with pytest.raises(ValueError, match="bad order"):  # noqa: PT012
        async with new_worker(broker, "orders", fail, stop_on_error=True):
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                cancelled = True
                raise

    assert cancelled


async def test_error_of_the_block_is_raised_unchanged_after_an_ordered_stop(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"1"])
    handled = Handled(lambda record: anyio.sleep(1.0))
    error = KeyError("in the block")
    with pytest.raises(KeyError) as caught:  # noqa: PT012
        async with new_worker(broker, "orders", handled) as worker:
            await until(lambda: handled.running == 1)
            raise error

    assert error is caught.value
    assert 1 == worker.stats.accepted


@pytest.mark.parametrize("exit_error", [SystemExit(3), KeyboardInterrupt()])
async def test_exit_in_the_block_cancels_handlers_and_is_raised_unchanged(
    broker: MemoryBroker, exit_error: BaseException
) -> None:
    broker.produce("orders", [b"1"])
    handled = Handled(hang)
    with pytest.raises(type(exit_error)) as caught:  # noqa: PT012
        async with new_worker(broker, "orders", handled) as worker:
            await until(lambda: handled.running == 1)
            raise exit_error

    assert exit_error is caught.value
    assert 1 == worker.stats.released


async def test_cancelled_block_releases_its_records(broker: MemoryBroker) -> None:
    broker.produce("orders", [b"1"])
    handled = Handled(hang)
    ended = False
    with anyio.CancelScope() as scope:
        async with new_worker(broker, "orders", handled) as worker:
            await until(lambda: handled.running == 1)
            scope.cancel()
            await anyio.sleep_forever()
        ended = True

    assert (True, False) == (scope.cancelled_caught, ended)
    assert (1, 0) == (worker.stats.released, handled.running)


@on_asyncio
async def test_cancelled_task_of_asyncio_releases_the_records_of_its_block(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"1"])
    handled = Handled(hang)
    worker = new_worker(broker, "orders", handled)

    async def enter() -> None:
        async with worker:
            await anyio.sleep_forever()

    task = asyncio.ensure_future(enter())
    await until(lambda: handled.running == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (1, 0) == (worker.stats.released, handled.running)


async def test_cancelled_start_leaves_no_member(embedded: EmbeddedBroker) -> None:
    entered = False
    with embedded.faults.on("ApiVersions", times=None).stall():
        with anyio.move_on_after(0.5) as scope:
            async with new_worker(embedded, "orders", Handled()):
                entered = True

    assert (True, False) == (scope.cancelled_caught, entered)
    assert not [each for each in embedded.requests if each.api == "ShareGroupHeartbeat"]


async def test_stopped_worker_does_not_end_its_block(broker: MemoryBroker) -> None:
    waited: list[str] = []

    async def wait(worker: ShareWorker[Any, Any], name: str) -> None:
        await worker.wait_stopped()
        waited.append(name)

    worker = new_worker(broker, "orders", Handled())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, worker, "before the start")
        await anyio.wait_all_tasks_blocked()
        async with worker:
            await worker.assigned()
            worker.stop()
            await worker.wait_stopped()
            waited.append("in the block")
    await worker.wait_stopped()

    assert ["before the start", "in the block"] == sorted(waited)


async def test_worker_that_was_stopped_before_is_entered_and_has_stopped(
    embedded: EmbeddedBroker,
) -> None:
    worker = new_worker(embedded, "orders", Handled())
    worker.stop()
    async with worker:
        await worker.wait_stopped()

    assert not embedded.requests


async def test_signal_stops_the_worker_and_the_block_goes_on(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"1"])
    handled = Handled()
    async with new_worker(broker, "orders", handled) as worker:
        await until(lambda: worker.stats.accepted == 1)
        signal.raise_signal(signal.SIGTERM)
        await worker.wait_stopped()

    assert settled(broker, 1)


async def test_second_run_of_an_entered_worker_is_an_error(
    broker: MemoryBroker,
) -> None:
    async with new_worker(broker, "orders", Handled()) as worker:
        with pytest.raises(ConsumerStateError, match="a worker runs once"):
            await worker.run()
        with pytest.raises(ConsumerStateError, match="a worker runs once"):
            async with worker:
                pass


async def test_worker_in_an_async_generator_cancels_the_user_of_it(
    broker: MemoryBroker,
) -> None:
    """As in a web application's lifespan."""
    broker.produce("orders", [b"1"])

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        async with new_worker(broker, "orders", fail, stop_on_error=True):
            yield

    with pytest.raises(ValueError, match="bad order"):
        async with lifespan():
            await anyio.sleep_forever()
