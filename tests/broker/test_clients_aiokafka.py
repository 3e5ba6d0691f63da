"""aiokafka's clients, on a real Kafka and on the embedded one."""

import anyio
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import ProducerFenced

from tests.broker.clients import TIMEOUT, new_name
from tests.waiting import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow("clients poll over sockets in real time"),
]

PARTITIONS = 4


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def topic(any_kafka):
    return any_kafka.admin.create_topic(PARTITIONS)


@pytest.fixture
def producer(any_kafka):
    return lambda **config: AIOKafkaProducer(
        bootstrap_servers=any_kafka.bootstrap_servers, **config
    )


@pytest.fixture
def consumer(any_kafka):
    def consumer(*topics, **config):
        settings = {
            "bootstrap_servers": any_kafka.bootstrap_servers,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "heartbeat_interval_ms": 100,
        }
        return AIOKafkaConsumer(*topics, **{**settings, **config})

    return consumer


def sizes(*consumers):
    return [len(consumer.assignment()) for consumer in consumers]


async def take(consumer, count):
    return [await consumer.getone() for _ in range(count)]


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
async def test_records_of_every_codec_are_read_back(
    producer, consumer, topic, codec, idempotent
):
    values = [b"value %d, worth compressing" % number for number in range(500)]
    with anyio.fail_after(TIMEOUT):
        async with producer(
            compression_type=codec, enable_idempotence=idempotent, linger_ms=5
        ) as sender:
            sent = [await sender.send(topic, value, partition=1) for value in values]
            places = [await each for each in sent]
        async with consumer(topic) as receiver:
            records = await take(receiver, len(values))

    assert [(1, offset) for offset in range(500)] == [
        (place.partition, place.offset) for place in places
    ]
    assert values == [record.value for record in records]


async def test_record_has_all_produced_fields(producer, consumer, topic):
    headers = [("a", b"1"), ("ä", b"")]
    with anyio.fail_after(TIMEOUT):
        async with producer(acks=1) as sender:
            await sender.send_and_wait(
                topic, b"value", b"key", headers=headers, timestamp_ms=1234567890123
            )
        async with consumer(topic) as receiver:
            (record,) = await take(receiver, 1)

    assert (b"key", b"value", 1234567890123, tuple(headers)) == (
        record.key,
        record.value,
        record.timestamp,
        record.headers,
    )


async def test_two_consumers_share_partitions_and_one_continues_alone(
    producer, consumer, topic
):
    group = new_name("group")

    async def produce(*numbers):
        async with producer() as sender:
            for number in numbers:
                where = number % PARTITIONS
                await sender.send_and_wait(topic, b"%d" % number, partition=where)

    with anyio.fail_after(TIMEOUT):
        async with consumer(topic, group_id=group) as one:
            async with consumer(topic, group_id=group) as two:
                await until(lambda: sizes(one, two) == [2, 2])
                await produce(*range(20))
                seen = [r.value for each in (one, two) for r in await take(each, 10)]
                for each in (one, two):
                    await each.commit()
            await until(lambda: sizes(one) == [PARTITIONS])
            await produce(*range(20, 24))
            seen += [record.value for record in await take(one, 4)]

    assert [b"%d" % number for number in range(24)] == sorted(seen, key=int)


async def test_committed_offsets_are_read_back(producer, consumer, topic):
    group, where = new_name("group"), TopicPartition(topic, 2)
    with anyio.fail_after(TIMEOUT):
        async with producer() as sender:
            for number in range(5):
                await sender.send_and_wait(topic, b"%d" % number, partition=2)
        async with consumer(topic, group_id=group) as first:
            await take(first, 5)
            await first.commit({where: (3, "three")})
        async with consumer(topic, group_id=group) as second:
            records = await take(second, 2)
            assert 3 == await second.committed(where)
            ends = (
                await second.beginning_offsets([where]),
                await second.end_offsets([where]),
            )

    assert [b"3", b"4"] == [record.value for record in records]
    assert ({where: 0}, {where: 5}) == ends


async def test_read_committed_skips_aborted_records(producer, consumer, topic):
    with anyio.fail_after(TIMEOUT):
        async with producer(transactional_id=new_name("transaction")) as sender:
            for number in range(4):
                await sender.begin_transaction()
                for _ in range(3):
                    await sender.send_and_wait(topic, b"%d" % number, partition=0)
                if number % 2:
                    await sender.abort_transaction()
                else:
                    await sender.commit_transaction()
        async with consumer(topic, isolation_level="read_committed") as committed:
            seen = [record.value for record in await take(committed, 6)]
            assert not await committed.getmany(timeout_ms=200)

    assert [b"0"] * 3 + [b"2"] * 3 == seen


async def test_transaction_commits_offsets(producer, consumer, topic):
    group, where = new_name("group"), TopicPartition(topic, 0)
    with anyio.fail_after(TIMEOUT):
        async with consumer(topic, group_id=group) as reader:
            async with producer(transactional_id=new_name("transaction")) as sender:
                async with sender.transaction():
                    await sender.send_and_wait(topic, b"x", partition=0)
                    await sender.send_offsets_to_transaction({where: 7}, group)
                await sender.begin_transaction()
                await sender.send_offsets_to_transaction({where: 9}, group)
                await sender.abort_transaction()
            assert 7 == await reader.committed(where)


async def test_second_producer_of_a_transactional_id_fences_the_first(producer, topic):
    name = new_name("transaction")
    with anyio.fail_after(TIMEOUT):
        async with producer(transactional_id=name) as first:
            await first.begin_transaction()
            await first.send_and_wait(topic, b"x", partition=0)
            async with producer(transactional_id=name) as second:
                with pytest.raises(ProducerFenced):
                    await first.commit_transaction()
                async with second.transaction():
                    await second.send_and_wait(topic, b"y", partition=0)


async def test_admin_client_creates_and_deletes_topics(any_kafka):
    name = new_name("topic")
    admin = AIOKafkaAdminClient(bootstrap_servers=any_kafka.bootstrap_servers)
    with anyio.fail_after(TIMEOUT):
        await admin.start()
        try:
            await admin.create_topics([NewTopic(name, 3, 1)])
            described = {"partitions": []}
            while not described["partitions"]:
                # real time: Kafka responds before every broker knows
                await anyio.sleep(0.05)
                (described,) = await admin.describe_topics([name])
            await admin.delete_topics([name])
            while name in await admin.list_topics():
                # real time: Kafka responds before every broker knows
                await anyio.sleep(0.05)
        finally:
            await admin.close()

    assert 3 == len(described["partitions"])
