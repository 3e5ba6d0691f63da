"""Stopping a worker: grace, signals, deliveries, cancellation."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest
from anyio import to_thread

from sharecons import Record, ShareWorker
from sharecons.errors import ClosedError
from sharecons.testing import EmbeddedBroker
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import (
    Handled,
    new_worker,
    on_real_clock,
    settled,
    working,
)

pytestmark = pytest.mark.anyio


async def deliveries(broker: MemoryBroker, count: int) -> Counter[int]:
    """Handle the next `count` records; return how many have each delivery count."""
    handled: list[int] = []

    async def handle(record: Record[Any, Any]) -> None:
        handled.append(record.delivery_count)

    async with working(broker, handle):
        await until(lambda: len(handled) == count)
    return Counter(handled)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_lets_handlers_finish(
    broker: MemoryBroker, number: signal.Signals
) -> None:
    broker.produce("orders", [b"a"])

    async def send_signal(record: Record[Any, Any]) -> None:
        os.kill(os.getpid(), number)
        await anyio.sleep(0.5)

    worker = new_worker(broker, "orders", send_signal)
    with anyio.fail_after(20):
        await worker.run()

    assert settled(broker, 1)
    assert 1 == worker.stats.accepted


async def test_second_signal_cancels_handlers(broker: MemoryBroker) -> None:
    broker.produce("orders", [b"a"])
    ends: list[str] = []

    async def hang(record: Record[Any, Any]) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await anyio.sleep(0.3)
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            await anyio.sleep(60)
        finally:
            ends.append("cancelled")

    worker = new_worker(broker, "orders", hang, shutdown_grace=50.0)
    with anyio.fail_after(20):
        await worker.run()

    assert ["cancelled"] == ends
    assert not settled(broker, 1)
    assert 1 == worker.stats.released


async def test_signals_reach_all_workers_of_the_process(broker: MemoryBroker) -> None:
    broker.produce("orders", [b"a"])
    broker.produce("orders.retry", [b"b"])
    before = [*map(signal.getsignal, (signal.SIGTERM, signal.SIGINT))]
    hanging = Handled(lambda record: anyio.sleep(60))
    workers = [
        new_worker(broker, topic, hanging, shutdown_grace=50.0)
        for topic in ("orders", "orders.retry")
    ]

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for worker in workers:
                tasks.start_soon(worker.run)
            await until(lambda: hanging.running == 2)
            os.kill(os.getpid(), signal.SIGTERM)
            await anyio.sleep(1.0)
            assert 2 == hanging.running
            os.kill(os.getpid(), signal.SIGTERM)

    assert [1, 1] == [worker.stats.released for worker in workers]
    assert before == [*map(signal.getsignal, (signal.SIGTERM, signal.SIGINT))]


@on_real_clock
@pytest.mark.slow("two event loops, and sockets")
async def test_worker_in_a_thread_runs_without_signals(
    share_broker: EmbeddedBroker,
) -> None:
    share_broker.create_topic("orders", partitions=1)
    share_broker.produce("orders", [b"a"])
    threads: list[int] = []

    async def handle(record: Record[Any, Any]) -> None:
        threads.append(threading.get_ident())
        worker.stop()

    worker = ShareWorker(
        "orders",
        handle,
        group_id="billing",
        bootstrap_servers=share_broker.bootstrap_servers,
        auto_offset_reset="earliest",
    )
    with anyio.fail_after(20):
        await to_thread.run_sync(partial(anyio.run, worker.run))

    assert 1 == len(threads)
    assert threading.get_ident() not in threads
    assert settled(share_broker, 1)


async def test_worker_with_handle_signals_false_sets_no_signal_handler(
    broker: MemoryBroker,
) -> None:
    received: list[int] = []
    worker = new_worker(broker, "orders", Handled(), handle_signals=False)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            await until(lambda: worker.connected)
            before = signal.signal(
                signal.SIGTERM, lambda number, frame: received.append(number)
            )
            os.kill(os.getpid(), signal.SIGTERM)
            await until(lambda: bool(received))
            signal.signal(signal.SIGTERM, before)
            worker.stop()

    assert [signal.SIGTERM] == received


@pytest.mark.slow("thousands of records")
async def test_stopping_under_load_uses_up_no_delivery(broker: MemoryBroker) -> None:
    count = 3000
    for first in range(0, count, 100):
        broker.produce("orders", [b"%d" % n for n in range(first, first + 100)])
    handled = Handled(lambda record: anyio.sleep(0.01))

    async with working(broker, handled, concurrency=20):
        await until(lambda: len(handled.calls) > 300)

    first = len(handled.calls)
    assert first == len({*handled.calls}) < count
    assert settled(broker, first)
    assert {1: count - first} == await deliveries(broker, count - first)


@on_real_clock
async def test_thread_that_exceeds_the_grace_is_left(broker: MemoryBroker) -> None:
    broker.produce("orders", [b"a"])
    started, leave = threading.Event(), threading.Event()

    def hang(record: Record[Any, Any]) -> None:
        started.set()
        leave.wait(60)

    try:
        async with working(broker, hang, shutdown_grace=0.05):
            await until(started.is_set)
    finally:
        leave.set()

    assert not settled(broker, 1)


async def test_cancelled_run_releases_the_records_that_are_not_settled(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"%d" % number for number in range(50)])
    handled = Handled(lambda record: anyio.sleep(60))
    worker = new_worker(broker, "orders", handled, concurrency=10)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        await until(lambda: handled.running == 10)
        tasks.cancel_scope.cancel()

    assert 0 == handled.running
    found = await deliveries(broker, 50)
    assert 50 == found.total()
    assert {1, 2} >= {*found}


@on_real_clock
@pytest.mark.parametrize("method", ["stop", "stop_now"])
async def test_stop_in_another_thread_stops_the_worker(
    broker: MemoryBroker, method: str
) -> None:
    broker.produce("orders", [b"a"])
    handled = Handled()
    async with working(broker, handled) as worker:
        await until(lambda: handled.calls == [b"a"])
        await to_thread.run_sync(getattr(worker, method))
        await worker.wait_stopped()


async def pass_through(attempt: object, call_next: Callable[[], Any]) -> None:
    await call_next()


@pytest.mark.parametrize("middleware", [(), (pass_through,)])
async def test_record_of_a_handler_that_catches_its_cancellation_is_released(
    broker: MemoryBroker, middleware: Any
) -> None:
    broker.produce("orders", [b"a"])

    async def hang(record: Record[Any, Any]) -> None:
        try:
            await anyio.sleep(60)
        except anyio.get_cancelled_exc_class():
            pass  # and returns, as if it had processed the record

    handled = Handled(hang)
    async with working(broker, handled, middleware=middleware) as worker:
        await until(lambda: handled.running == 1)
        worker.stop_now()

    assert 0 == worker.stats.accepted
    assert Counter({2: 1}) == await deliveries(broker, 1)


async def test_record_of_a_handler_that_ends_in_a_shield_is_accepted(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"a"])

    written = anyio.Event()

    async def write(record: Record[Any, Any]) -> None:
        with anyio.CancelScope(shield=True):
            await written.wait()

    handled = Handled(write)
    async with working(broker, handled) as worker:
        await until(lambda: handled.running == 1)
        worker.stop_now()
        await anyio.wait_all_tasks_blocked()  # it is cancelled, within the shield
        written.set()

    assert settled(broker, 1)


async def test_cancelled_handler_has_the_lost_lock_as_the_reason(
    broker: MemoryBroker,
) -> None:
    config = {
        "share.record.lock.duration.ms": 1000,
        "share.renew.acknowledge.enable": "false",
    }
    broker.set_group_config("billing", config)
    broker.produce("orders", [b"a", b"b"])
    reasons: list[str] = []

    async def hang(record: Record[Any, Any]) -> None:
        if record.delivery_count > 1 or record.value == b"b":
            return
        try:
            await anyio.sleep(60)
        except anyio.get_cancelled_exc_class() as error:
            reasons.append(str(error))
            assert not record.held
            raise

    async with working(broker, hang, concurrency=1) as worker:
        await until(lambda: settled(broker, 2))
        assert 1 == worker.stats.locks_lost

    (reason,) = reasons
    assert "LockLost" in reason


async def test_end_of_the_worker_ends_a_wait_for_partitions(
    embedded: EmbeddedBroker,
) -> None:
    worker = new_worker(embedded, "nothing", Handled())

    async def wait() -> None:
        with pytest.raises(ClosedError):
            await worker.assigned()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            tasks.start_soon(wait)
            await anyio.sleep(1)
            worker.stop()

    with pytest.raises(ClosedError, match="has ended"):
        await worker.assigned()
