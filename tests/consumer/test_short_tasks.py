"""poll() in tasks that end before their records are processed."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest

from sharecons.testing import EmbeddedBroker, virtual_time
from sharecons.testing.pytest_plugin import SETTINGS
from sharecons.testing.virtual_time import Backend
from tests.consumer.consuming import consuming
from tests.waiting import until

pytestmark = pytest.mark.anyio

WARNING = "three tasks in a row ended"


@pytest.fixture
def anyio_backend() -> Backend:
    return virtual_time.backend("asyncio")


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        broker.create_topic("orders")
        broker.produce("orders", [b"%d" % n for n in range(4)])
        yield broker


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING, "sharecons")
    return lambda: [each.getMessage() for each in caplog.records]


def start_offset(broker: EmbeddedBroker) -> int:
    """Return the first offset that is not settled."""
    try:
        (partition,) = broker.group("billing").partitions
    except LookupError:  # no consumer has joined
        return 0
    return partition.start_offset or 0


async def test_poll_in_a_function_under_wait_for_accepts_the_previous_records(
    broker: EmbeddedBroker, warnings: Callable[[], list[str]]
) -> None:
    processed: list[bytes] = []
    async with consuming(broker) as consumer:

        async def receive() -> list[Any]:
            return await consumer.poll(timeout=1.0, max_records=1)

        async def receive_nested() -> list[Any]:
            return await asyncio.wait_for(receive(), 5)

        while start_offset(broker) < 4:
            records = await asyncio.wait_for(receive_nested(), 5)
            processed += [record.value for record in records]

    assert processed == [b"0", b"1", b"2", b"3"]
    assert [] == warnings()


async def test_two_callers_under_wait_for_have_records_of_their_own(
    broker: EmbeddedBroker,
) -> None:
    """The records of a caller that still processes are not accepted by another."""
    async with consuming(broker, max_records=1) as consumer:

        async def receive() -> list[Any]:
            return await consumer.poll(timeout=1.0, max_records=1)

        async def slow() -> None:
            (record,) = await asyncio.wait_for(receive(), 5)
            await anyio.sleep(10.0)
            assert record.held
            record.reject()

        async def fast() -> None:
            while await asyncio.wait_for(receive(), 5):
                pass

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(slow)
            await anyio.sleep(0.1)
            tasks.start_soon(fast)
        await consumer.commit()

    assert 4 == start_offset(broker)


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="wait_for() makes no task: the caller's poll"
)
async def test_failed_function_under_wait_for_releases_its_records(
    broker: EmbeddedBroker,
) -> None:
    counts: dict[int, int] = {}
    async with consuming(broker) as consumer:

        async def work() -> None:
            for record in await consumer.poll(timeout=1.0, max_records=1):
                counts[record.offset] = record.delivery_count
                if record.delivery_count == 1:
                    raise ValueError

        while start_offset(broker) < 4:
            with suppress(ValueError):
                await asyncio.wait_for(work(), 5)

    assert counts == dict.fromkeys(range(4), 2)


async def test_tasks_that_end_after_one_poll_are_named(
    broker: EmbeddedBroker, warnings: Callable[[], list[str]]
) -> None:
    async with consuming(broker) as consumer:

        async def receive() -> list[Any]:
            return await consumer.poll(timeout=1.0)

        for _ in range(4):
            await asyncio.create_task(receive())
        await until(lambda: any(WARNING in each for each in warnings()))

    (warning,) = [each for each in warnings() if WARNING in each]
    assert "call poll() in the task that processes the records" in warning
    assert "group=billing" in warning


async def test_tasks_that_accept_their_records_are_not_named(
    broker: EmbeddedBroker, warnings: Callable[[], list[str]]
) -> None:
    async with consuming(broker) as consumer:

        async def work() -> None:
            for record in await consumer.poll(timeout=1.0, max_records=1):
                record.accept()

        for _ in range(5):
            await asyncio.create_task(work())
        await until(lambda: start_offset(broker) == 4)

    assert [] == warnings()
