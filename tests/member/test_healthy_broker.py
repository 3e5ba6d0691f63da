"""The requests of a consumer whose brokers work."""

import anyio
import pytest

from sharecons.protocol.group.metadata import Metadata
from tests.net.embedded import (
    SlowNetwork,
    accepted,
    consuming,
    read_records,
    requests,
    running,
)

pytestmark = pytest.mark.anyio


async def test_records_are_delivered_once_and_accepted():
    async with running(20) as broker:
        network = SlowNetwork(broker)
        async with consuming(broker, network=network) as consumer:
            loop = aiter(consumer)
            records = [await anext(loop) for _ in range(20)]
            with anyio.move_on_after(1):
                await anext(loop)

        assert [b"%d" % i for i in range(20)] == [record.value for record in records]
        assert {1} == {record.delivery_count for record in records}
        assert 20 == accepted(broker)
        assert 0 == network.open


async def test_first_record_comes_without_a_heartbeat_interval():
    """The second heartbeat, 0.1 s after the first, returns the assignment."""
    async with running(1) as broker:
        started = anyio.current_time()
        async with consuming(broker) as consumer:
            await read_records(consumer, 1)

            assert anyio.current_time() - started < 0.12


async def test_partitions_of_several_brokers_are_read():
    async with running(partitions=4, brokers=2) as broker:
        for partition in range(4):
            broker.produce("orders", [b"a", b"b"], partition=partition)
        async with consuming(broker) as consumer:
            records = await read_records(consumer, 8)

    assert {(p, o) for p in range(4) for o in range(2)} == {
        (record.partition, record.offset) for record in records
    }


async def test_idle_consumer_sends_few_requests():
    async with running() as broker:
        async with consuming(broker) as consumer:
            with anyio.move_on_after(100):
                await anext(aiter(consumer))

            assert len(requests(broker, "ShareGroupHeartbeat")) < 60
            assert len(requests(broker, "ShareFetch")) < 250
            assert [] == requests(broker, "ShareAcknowledge")


async def test_idle_consumer_does_not_look_at_its_partitions(monkeypatch):
    """A member has hundreds of partitions, and a process can have many members."""
    looks = 0
    find_leaders = Metadata.leaders

    def leaders(metadata):
        nonlocal looks
        looks += 1
        return find_leaders(metadata)

    monkeypatch.setattr(Metadata, "leaders", leaders)
    async with running() as broker:
        async with consuming(broker) as consumer:
            with anyio.move_on_after(10):
                await anext(aiter(consumer))
            assert looks > 0  # its start, at least
            looks = 0
            with anyio.move_on_after(100):
                await anext(aiter(consumer))

            assert 0 == looks


async def test_records_arrive_when_they_are_produced():
    async with running() as broker:
        async with consuming(broker) as consumer:
            loop = aiter(consumer)
            for number in range(5):
                with anyio.move_on_after(3):
                    await anext(loop)
                broker.produce("orders", [b"%d" % number])
                started = anyio.current_time()
                record = await anext(loop)

                assert b"%d" % number == record.value
                assert anyio.current_time() - started < 0.1
