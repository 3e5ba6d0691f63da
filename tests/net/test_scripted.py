"""The scripted broker itself: a consumer works with it as with a real one."""

import anyio
import pytest

from tests.net.scripted import ACKNOWLEDGE, FETCH, HEARTBEAT, ScriptedBroker, consuming

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock):
    return virtual_clock


async def take(consumer, count):
    records = []
    async for record in consumer:
        records.append(record)
        if len(records) == count:
            break
    return records


async def test_records_are_delivered_and_accepted():
    broker = ScriptedBroker(20)
    async with consuming(broker) as consumer:
        loop = aiter(consumer)
        records = [await anext(loop) for _ in range(20)]
        with anyio.move_on_after(1):
            await anext(loop)

    assert [b"%d" % i for i in range(20)] == [record.value for record in records]
    assert list(range(20)) == broker.accepted
    assert 0 == broker.open
    assert {1} == {count for _, _, count in broker.delivered}


async def test_first_record_comes_without_a_heartbeat_interval():
    broker = ScriptedBroker(1)
    started = anyio.current_time()
    async with consuming(broker) as consumer:
        await take(consumer, 1)

        assert anyio.current_time() - started < 0.1


async def test_partitions_of_several_nodes():
    broker = ScriptedBroker(partitions=4, nodes=2)
    for partition in range(4):
        broker.produce(b"a", b"b", partition=partition)
    async with consuming(broker) as consumer:
        records = await take(consumer, 8)

    assert {(p, o) for p in range(4) for o in range(2)} == {
        (record.partition, record.offset) for record in records
    }


async def test_idle_consumer_sends_few_requests():
    broker = ScriptedBroker()
    async with consuming(broker) as consumer:
        with anyio.move_on_after(100):
            await anext(aiter(consumer))

        assert len(broker.asked(HEARTBEAT)) < 60
        assert len(broker.asked(FETCH)) < 250
        assert [] == broker.asked(ACKNOWLEDGE)


async def test_records_come_as_they_are_produced():
    broker = ScriptedBroker()
    async with consuming(broker) as consumer:
        loop = aiter(consumer)
        for number in range(5):
            with anyio.move_on_after(3):
                await anext(loop)
            broker.produce(b"%d" % number)
            started = anyio.current_time()
            record = await anext(loop)

            assert b"%d" % number == record.value
            assert anyio.current_time() - started < 0.1
