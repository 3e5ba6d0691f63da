"""The producer on both brokers."""

from collections import Counter

import anyio
import pytest

from sharecons.records.compression import Codec
from tests.kafka_plugin import Admin
from tests.producer.running import producing
from tests.scenarios.queue import Queue, take

pytestmark = pytest.mark.anyio


async def test_record_keeps_key_value_headers_and_timestamp(admin: Admin) -> None:
    queue = Queue(admin, partitions=2)
    headers = (("trace", b"1"), ("trace", b"2"), ("empty", None))

    async with producing(admin.bootstrap_servers) as producer:
        position = await producer.send(
            queue.topic, b"v", key=b"k", headers=headers, timestamp=1234, partition=1
        )
        await producer.send(queue.topic, None, partition=1)
    async with queue.consumer() as consumer:
        first, second = await take(aiter(consumer), 2)

    assert (queue.topic, 1, 0) == position
    assert (b"k", b"v", headers, 1234) == (
        first.key,
        first.value,
        first.headers,
        first.timestamp,
    )
    assert (None, None, ()) == (second.key, second.value, second.headers)
    assert second.timestamp > 1_700_000_000_000


async def test_many_tasks_write_each_record_once(admin: Admin) -> None:
    queue = Queue(admin, partitions=3)

    with anyio.fail_after(30):
        async with (
            producing(admin.bootstrap_servers, compression=Codec.LZ4) as producer,
            anyio.create_task_group() as tasks,
        ):
            for number in range(2000):
                tasks.start_soon(producer.send, queue.topic, b"%d" % number)
    async with queue.consumer() as consumer:
        records = await take(aiter(consumer), 2000)

    assert Counter(b"%d" % number for number in range(2000)) == Counter(
        record.value for record in records
    )


async def test_keys_have_the_partitions_of_kafkas_producer(admin: Admin) -> None:
    queue = Queue(admin, partitions=7)
    keys = [b"key-%d" % number for number in range(50)]
    queue.produce([b"other"] * 50, keys=keys, partitioner="murmur2_random")

    async with producing(admin.bootstrap_servers) as producer:
        for key in keys:
            await producer.send(queue.topic, b"own", key=key)
    async with queue.consumer() as consumer:
        records = await take(aiter(consumer), 100)

    found = {
        value: {r.key: r.partition for r in records if r.value == value}
        for value in (b"other", b"own")
    }
    assert 50 == len(found[b"own"])
    assert found[b"other"] == found[b"own"]


async def test_records_of_a_partition_have_the_order_of_the_calls(
    admin: Admin,
) -> None:
    queue = Queue(admin, partitions=2)
    calls: list[bytes] = []

    async with producing(admin.bootstrap_servers) as producer:

        async def send(number: int) -> None:
            value = b"%d" % number
            calls.append(value)
            await producer.send(queue.topic, value, partition=number % 2)

        async with anyio.create_task_group() as tasks:
            for number in range(300):
                tasks.start_soon(send, number)
                if number % 50 == 0:
                    await anyio.lowlevel.checkpoint()
    async with queue.consumer() as consumer:
        records = await take(aiter(consumer), 300)

    for partition in range(2):
        found = sorted((r.offset, r.value) for r in records if r.partition == partition)
        expected = [value for value in calls if int(value) % 2 == partition]
        assert expected == [value for _, value in found]
