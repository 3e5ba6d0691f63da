"""Handlers that block the event loop, and the lines that name them."""

import time
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from sharecons import BatchHandler, Record
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from sharecons.worker import slots
from sharecons.worker.blocked_loop import Block, BlockedLoop, Call
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.routes import route, working_routes
from tests.worker.working import Handled, on_real_clock, process, settled, working

pytestmark = pytest.mark.anyio

BLOCKED = "a handler blocked the event loop"
STOPPED = "the event loop did not run"
slow = pytest.mark.slow("blocks an event loop for more than a second")


def block(seconds: float) -> None:
    """Block the event loop of the caller."""
    time.sleep(seconds)  # real time: the clock of a loop that is blocked


def call(seconds: float, offset: int = 0) -> Call:
    return Call(seconds, "write", (f"orders-0@{offset}",))


def test_late_wakeup_after_a_long_step_names_its_call() -> None:
    loop = BlockedLoop()
    loop.on_step(call(2.0, 7))

    found = loop.on_wake(1.8, now=10.0)

    assert [Block(2.0, 1, (call(2.0, 7),))] == found


def test_late_wakeup_without_a_long_step_names_no_call() -> None:
    loop = BlockedLoop()
    loop.on_step(call(0.3))

    assert [Block(5.0, 1, ())] == loop.on_wake(5.0, now=10.0)


def test_many_steps_of_less_than_a_second_are_one_block() -> None:
    loop = BlockedLoop()
    calls = [call(seconds, n) for n, seconds in enumerate((0.5, 0.9, 0.6, 0.7))]
    for each in calls:
        loop.on_step(each)

    found = loop.on_wake(2.7, now=10.0)

    assert [Block(2.7, 1, (calls[1], calls[3], calls[2]))] == found


def test_wakeups_within_a_second_are_no_block() -> None:
    loop = BlockedLoop()
    loop.on_step(call(0.9))

    assert [] == loop.on_wake(0.9, now=10.0)
    assert [] == loop.on_wake(0.0, now=10.5), "steps before a wakeup are forgotten"


def test_long_steps_without_a_late_wakeup_are_no_block() -> None:
    """On a virtual clock, the wakeups are never late."""
    loop = BlockedLoop()
    loop.on_step(call(3.0))

    assert [] == loop.on_wake(0.0, now=10.0)


def test_blocks_within_a_minute_are_reported_once_with_the_longest() -> None:
    loop = BlockedLoop()

    def block_at(now: float, seconds: float) -> list[Block]:
        loop.on_step(call(seconds, round(now)))
        return loop.on_wake(seconds, now)

    assert [Block(2.0, 1, (call(2.0, 10),))] == block_at(10.0, 2.0)
    assert [] == block_at(20.0, 3.0)
    assert [] == block_at(30.0, 1.5)
    assert [] == loop.on_wake(0.0, 69.9)
    assert [Block(3.0, 2, (call(3.0, 20),))] == loop.on_wake(0.0, 70.1)
    assert [] == loop.on_wake(0.0, 500.0)
    assert [Block(2.0, 1, (call(2.0, 501),))] == block_at(501.0, 2.0)


def test_blocks_that_are_not_reported_yet_are_returned_at_the_end() -> None:
    loop = BlockedLoop()
    for now in (10.0, 20.0):
        loop.on_step(call(2.0, round(now)))
        loop.on_wake(2.0, now)

    assert [Block(2.0, 1, (call(2.0, 20),))] == loop.end()
    assert [] == loop.end()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each for each in caplog.messages if BLOCKED in each or STOPPED in each]


@slow
@on_real_clock
@pytest.mark.parametrize("timeout", [None, 60.0])
async def test_handler_that_blocks_the_event_loop_is_named(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture, timeout: float | None
) -> None:
    broker.produce("orders", [b"quick", b"slow", b"quick"])

    async def charge(record: Record[Any, Any]) -> None:
        if record.value == b"slow":
            await checkpoint()
            block(1.3)

    async with working(broker, charge, timeout=timeout):
        await until(lambda: settled(broker, 3))
        await until(lambda: lines(caplog))

    (line,) = lines(caplog)
    assert BLOCKED in line
    assert "charge'" in line
    assert "records=orders-0@1" in line
    assert "blocks=1" in line
    assert 1.3 <= float(line.partition(" seconds=")[2].split()[0]) < 10.0


@slow
@on_real_clock
async def test_line_names_the_one_of_several_handlers_that_blocks_the_event_loop(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"quick"])
    broker.produce("orders.retry", [b"slow"])

    async def charge(record: Record[Any, Any]) -> None:
        await checkpoint()

    async def refund(record: Record[Any, Any]) -> None:
        block(1.3)

    routes = {"orders": route(charge), "orders.retry": route(refund)}
    async with working_routes(broker, routes):
        await until(lambda: lines(caplog))

    (line,) = lines(caplog)
    assert "refund'" in line
    assert "charge" not in line.partition("handler=")[2]


@slow
@on_real_clock
async def test_batch_handler_that_blocks_the_event_loop_is_named(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"%d" % number for number in range(5)])

    async def write(batch: Any) -> None:
        block(1.1)

    async with working(broker, BatchHandler(write, max_records=5, max_wait=1.0)):
        await until(lambda: settled(broker, 5))
        await until(lambda: lines(caplog))

    (line,) = lines(caplog)
    assert "'orders-0@0, orders-0@1, orders-0@2, …'" in line
    assert "write'" in line


@slow
@on_real_clock
async def test_advice_for_a_lock_that_ended_in_a_block_is_not_to_renew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lock = {"share.record.lock.duration.ms": 1000}
    settings = {**SETTINGS, "group.share.min.record.lock.duration.ms": "1000"}

    async def handle(record: Record[Any, Any]) -> None:
        if record.delivery_count == 1:
            block(1.3)

    async with EmbeddedBroker(settings=settings, listen=False) as broker:
        broker.create_topic("orders", partitions=1)
        broker.set_group_config("billing", lock)
        broker.produce("orders", [b"a"])
        async with working(broker, handle):
            await until(lambda: "acknowledgements failed" in caplog.text)

    assert "renew()" not in caplog.text
    assert "the lock lasts 1 s: raise share.record.lock.duration.ms" in caplog.text
    assert "do not block the event loop" in caplog.text


@slow
@on_real_clock
async def test_other_code_that_blocks_the_event_loop_is_not_called_a_handler(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"a"])
    handled = Handled(lambda record: anyio.sleep_forever())

    async with working(broker, handled, shutdown_grace=0.0):
        await until(lambda: handled.running)
        block(1.6)
        await until(lambda: lines(caplog))

    (line,) = lines(caplog)
    assert STOPPED in line
    assert "or the process was stopped" in line


@slow
@on_real_clock
async def test_thread_of_a_plain_handler_does_not_block_the_event_loop(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"a"])

    def handle(record: Record[Any, Any]) -> None:
        time.sleep(1.6)  # real time: the event loop runs meanwhile

    await process(broker, handle, 1)

    assert [] == lines(caplog)


@slow
async def test_worker_on_a_virtual_clock_logs_no_block(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"a"])

    async def handle(record: Record[Any, Any]) -> None:
        block(1.2)  # on a virtual clock, this takes no time
        await anyio.sleep(30.0)

    async with working(broker, handle, within=400.0):
        await until(lambda: settled(broker, 1), within=100.0, pause=1.0)
        await anyio.sleep(100.0)

    assert [] == lines(caplog)


async def test_long_step_that_settles_its_records_without_a_call_ends_nothing(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "LONG_STEP", 0.0)  # every step is a long one
    broker.produce("orders", [b"no number"])
    options: dict[str, Any] = {"on_deserialization_error": "reject"}

    async with working(broker, Handled(), value_deserializer=int, **options):
        await until(lambda: settled(broker, 1))
        broker.produce("orders", [b"7"])
        await until(lambda: settled(broker, 2))
