"""The producer on both brokers."""

from collections import Counter
from typing import Any

import anyio
import pytest
from anyio import to_thread

from sharecons import Producer, ProducerRecord, Record, RecordPosition
from sharecons.errors import BrokerError
from tests.broker.java_tools import JavaTools
from tests.kafka_plugin import Admin, Kafka
from tests.scenarios.queue import Queue, take
from tests.scenarios.versions import since_4_2

pytestmark = pytest.mark.anyio


async def test_record_keeps_key_value_headers_and_timestamp(admin: Admin) -> None:
    queue = Queue(admin, partitions=2)
    headers = (("trace", b"1"), ("trace", b"2"), ("empty", None))

    async with Producer(bootstrap_servers=admin.bootstrap_servers) as producer:
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
            Producer(
                bootstrap_servers=admin.bootstrap_servers, compression="lz4"
            ) as producer,
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

    async with Producer(bootstrap_servers=admin.bootstrap_servers) as producer:
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


@pytest.mark.slow("starts a JVM")
@pytest.mark.kafka
@since_4_2
async def test_keys_have_the_partitions_of_the_java_producer(real_kafka: Kafka) -> None:
    queue = Queue(real_kafka.admin, partitions=7)
    keys = [f"schlüssel {number}" for number in range(50)]

    def produce_with_java() -> None:
        JavaTools(real_kafka.bootstrap_servers).run(
            "kafka-console-producer",
            *("--topic", queue.topic),
            *("--reader-property", "parse.key=true"),
            *("--reader-property", "key.separator=:"),
            stdin="".join(f"{key}:java\n" for key in keys),
        )

    await to_thread.run_sync(produce_with_java)
    async with Producer(bootstrap_servers=real_kafka.bootstrap_servers) as producer:
        outcomes = await producer.send_many(
            ProducerRecord(queue.topic, b"own", key=key.encode()) for key in keys
        )
    async with queue.consumer() as consumer:
        records = await take(aiter(consumer), 100)

    java = {r.key.decode(): r.partition for r in records if r.value == b"java"}
    positions = [each for each in outcomes if isinstance(each, RecordPosition)]
    assert [java[key] for key in keys] == [each.partition for each in positions]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_compressed_records_are_read_unchanged(
    admin: Admin, compression: Any
) -> None:
    queue = Queue(admin)
    values = [b"%d" % number * 1000 for number in range(100)]

    async with Producer(
        bootstrap_servers=admin.bootstrap_servers, compression=compression
    ) as producer:
        outcomes = await producer.send_many(
            ProducerRecord(queue.topic, value) for value in values
        )
    async with queue.consumer() as consumer:
        records = await take(aiter(consumer), 100)

    assert [(queue.topic, 0, number) for number in range(100)] == outcomes
    assert values == [record.value for record in records]


async def test_records_without_a_key_reach_all_partitions(admin: Admin) -> None:
    queue = Queue(admin, partitions=4)

    async with Producer(bootstrap_servers=admin.bootstrap_servers) as producer:
        positions = [await producer.send(queue.topic, b"") for _ in range(8)]

    assert [2, 2, 2, 2] == list(Counter(each.partition for each in positions).values())


async def test_record_that_is_too_large_is_named_and_others_are_written(
    admin: Admin,
) -> None:
    queue = Queue(admin)
    records = [
        ProducerRecord(queue.topic, value)
        for value in (b"first", b"x" * 2_000_000, b"last")
    ]

    async with Producer(bootstrap_servers=admin.bootstrap_servers) as producer:
        first, large, last = await producer.send_many(records)

    assert (queue.topic, 0, 0) == first
    assert isinstance(large, BrokerError)
    assert "MESSAGE_TOO_LARGE" == large.name
    assert "raise max.message.bytes" in str(large)
    assert (queue.topic, 0, 1) == last


async def test_topic_that_does_not_exist_is_named(admin: Admin) -> None:
    async with Producer(
        bootstrap_servers=admin.bootstrap_servers, delivery_timeout=1.0
    ) as producer:
        with pytest.raises(BrokerError, match="'missing-topic' does not exist"):
            await producer.send("missing-topic", b"a")


async def test_forbidden_topic_is_named(admin: Admin) -> None:
    queue = Queue(admin)
    admin.deny_topic(queue.topic)

    async with Producer(bootstrap_servers=admin.bootstrap_servers) as producer:
        with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED; grant"):
            await producer.send(queue.topic, b"a")


async def test_close_writes_the_records_of_other_tasks(admin: Admin) -> None:
    queue = Queue(admin)
    called: list[int] = []

    async with anyio.create_task_group() as tasks:
        async with Producer(bootstrap_servers=admin.bootstrap_servers) as producer:

            async def send(number: int) -> None:
                called.append(number)
                await producer.send(queue.topic, b"%d" % number)

            for number in range(500):
                tasks.start_soon(send, number)
            while len(called) < 500:
                await anyio.lowlevel.checkpoint()
    records = await read(queue, 500)

    assert {b"%d" % number for number in range(500)} == {r.value for r in records}


async def test_cancelled_send_is_written_at_most_once(admin: Admin) -> None:
    queue = Queue(admin)

    async with Producer(bootstrap_servers=admin.bootstrap_servers) as producer:
        async with anyio.create_task_group() as tasks:
            for number in range(500):
                tasks.start_soon(producer.send, queue.topic, b"%d" % number)
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        end = await producer.send(queue.topic, b"end")
    records = await read(queue, end.offset + 1)

    assert b"end" == records[-1].value
    assert {1} == set(Counter(record.value for record in records).values())


async def read(queue: Queue, count: int) -> list[Record[Any, Any]]:
    async with queue.consumer() as consumer:
        return await take(aiter(consumer), count)


async def test_records_of_a_partition_have_the_order_of_the_calls(
    admin: Admin,
) -> None:
    queue = Queue(admin, partitions=2)
    calls: list[bytes] = []

    async with Producer(bootstrap_servers=admin.bootstrap_servers) as producer:

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
