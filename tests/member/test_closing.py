"""Closing consumers whose brokers are slow, silent, or change meanwhile."""

import anyio
import pytest

from tests.net.embedded import (
    accepted_offsets,
    consuming,
    next_record,
    read_records,
    running,
)

pytestmark = pytest.mark.anyio

APIS = ("ShareFetch", "ShareAcknowledge", "ShareGroupHeartbeat")


async def seconds_to_close(consumer, **options):
    began = anyio.current_time()
    await consumer.aclose(**options)
    return anyio.current_time() - began


async def test_slow_brokers_are_closed_at_the_same_time():
    async with running(brokers=3, partitions=3) as broker:
        for partition in range(3):
            broker.produce("orders", [b"x"], partition=partition)
        async with consuming(broker, acknowledgement="explicit") as consumer:
            for record in await read_records(consumer, 3):
                record.accept()
            broker.faults.on("ShareAcknowledge", times=None).delay(1.5)

            assert await seconds_to_close(consumer) < 4


@pytest.mark.parametrize("timeout", [0.0, 1.0, 20.0])
async def test_silent_brokers_hold_up_closing_until_its_timeout(timeout):
    async with running(1, brokers=2, partitions=2) as broker:
        async with consuming(broker, acknowledgement="explicit") as consumer:
            (await next_record(consumer)).accept()
            for api in APIS:
                broker.faults.on(api, times=None).stall()

            seconds = await seconds_to_close(consumer, timeout=timeout)
            assert timeout == pytest.approx(seconds, abs=0.1)


async def test_leave_without_a_response_holds_up_closing_until_its_timeout():
    async with running(1) as broker:
        async with consuming(broker) as consumer:
            await next_record(consumer)
            broker.faults.on("ShareGroupHeartbeat", times=None).stall()

            assert 3.0 == pytest.approx(
                await seconds_to_close(consumer, timeout=3.0), abs=0.1
            )


async def test_fetches_that_wait_at_several_brokers_hold_up_closing_by_their_wait():
    async with running(brokers=3, partitions=3) as broker:
        async with consuming(broker, max_wait=5.0) as consumer:
            assert await next_record(consumer, within=20) is None

            assert await seconds_to_close(consumer) < 5.5
        assert not broker.group("billing").members


async def test_closing_while_leaders_move_sends_acknowledgements():
    async with running(brokers=2, partitions=2) as broker:
        for partition in (0, 1):
            broker.produce("orders", [b"x"] * 3, partition=partition)
        async with consuming(broker, acknowledgement="explicit") as consumer:
            for record in await read_records(consumer, 6):
                record.accept()
            await consumer.commit()
            broker.produce("orders", [b"y"] * 3, partition=1)
            await anyio.sleep(1)
            broker.move_leader("orders", 0, to=2)
            await anyio.sleep(0.01)
            for record in await read_records(consumer, 3):
                record.accept()

            assert await seconds_to_close(consumer) < 5
        assert {0, 1, 2} == accepted_offsets(broker)
        assert 6 == broker.group("billing").partition("orders", 1).start_offset


@pytest.mark.parametrize("partitions", [1, 3])
async def test_topic_recreated_while_closing_does_not_hold_it_up(partitions):
    async with running(3) as broker:
        async with consuming(broker, acknowledgement="explicit") as consumer:
            for record in await read_records(consumer, 3):
                record.accept()
            broker.faults.on("ShareAcknowledge", times=None).delay(0.5)
            async with anyio.create_task_group() as tasks:

                async def recreate():
                    await anyio.sleep(0.1)
                    broker.delete_topic("orders")
                    broker.create_topic("orders", partitions)

                tasks.start_soon(recreate)
                assert await seconds_to_close(consumer) < 5
