"""The warning about loops that end at their first record again and again."""

import logging

import anyio
import pytest

from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from tests.consumer.consuming import consuming

pytestmark = pytest.mark.anyio

WARNING = "three loops in a row ended at their first record"


@pytest.fixture
async def broker():
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        broker.create_topic("orders")
        broker.produce("orders", [b"%d" % n for n in range(20)])
        yield broker


@pytest.fixture
def warnings(caplog):
    caplog.set_level(logging.WARNING, "sharecons.consumer")
    return lambda: [
        each.getMessage() for each in caplog.records if WARNING in each.getMessage()
    ]


async def first_record(consumer):
    """Start a loop, and leave it at its first record."""
    with anyio.fail_after(20):
        return await anext(aiter(consumer))


async def test_loops_that_release_their_first_record_are_one_warning(broker, warnings):
    async with consuming(broker) as consumer:
        offsets = [(await first_record(consumer)).offset for _ in range(3)]
        assert [] == warnings(), "the third record is not released yet"
        with anyio.fail_after(20):
            for _ in range(4):
                async for record in consumer:
                    offsets.append(record.offset)
                    break

    assert len(set(offsets)) < len(offsets)
    (warning,) = warnings()
    assert "call record.accept() before leaving the loop" in warning
    assert "group=billing" in warning


async def test_loops_over_batches_are_counted(broker, warnings):
    async with consuming(broker, max_records=1) as consumer:
        for _ in range(4):
            with anyio.fail_after(20):
                await anext(aiter(consumer.batches()))

    assert 1 == len(warnings())


async def test_cancelled_loops_without_a_record_do_not_end_the_row(broker, warnings):
    async with consuming(broker) as consumer:
        for _ in range(4):
            await first_record(consumer)
            consumer.pause("orders")
            with anyio.move_on_after(0.1):
                await anext(aiter(consumer))
            consumer.resume("orders")

    assert 1 == len(warnings())


async def accept(record):
    record.accept()


async def release(record):
    record.release()


async def read_two(consumer):
    with anyio.fail_after(20):
        loop = aiter(consumer)
        await anext(loop)
        await anext(loop)


@pytest.mark.parametrize("settle", [accept, release])
async def test_loops_that_acknowledge_their_record_are_no_warning(
    broker, warnings, settle
):
    async with consuming(broker) as consumer:
        for _ in range(5):
            await settle(await first_record(consumer))

    assert [] == warnings()


async def test_loops_that_end_at_a_later_record_are_no_warning(broker, warnings):
    async with consuming(broker) as consumer:
        for _ in range(5):
            await read_two(consumer)

    assert [] == warnings()


async def test_loops_in_explicit_mode_are_no_warning(broker, warnings):
    async with consuming(broker, acknowledgement="explicit") as consumer:
        for _ in range(5):
            await first_record(consumer)

    assert [] == warnings()


async def test_loop_that_reads_on_ends_the_row(broker, warnings):
    async with consuming(broker) as consumer:
        for _ in range(3):
            await first_record(consumer)
            await first_record(consumer)
            await read_two(consumer)

    assert [] == warnings()
