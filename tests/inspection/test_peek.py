"""Reading records without consuming them."""

import pytest

from sharecons._record import TopicPartition
from sharecons.admin import OffsetSpec
from sharecons.errors import BrokerError
from sharecons.inspection.peek import peek
from tests.scenarios.queue import Queue, offsets, take

pytestmark = pytest.mark.anyio


def values(peeked):
    return [record.value for record in peeked.records]


def numbered(count):
    return [b"%d" % number for number in range(count)]


async def test_the_first_records_come_first(kafka, admin):
    topic = kafka.admin.create_topic()
    kafka.admin.produce(topic, numbered(30), keys=["k"] * 30, headers=[("h", b"1")])
    peeked = await peek(admin, topic, max_records=3)

    assert [b"0", b"1", b"2"] == values(peeked)
    assert (b"k", (("h", b"1"),)) == (peeked.records[0].key, peeked.records[0].headers)
    assert {} == peeked.errors


async def test_last_returns_the_newest_records(kafka, admin):
    topic = kafka.admin.create_topic()
    kafka.admin.produce(topic, numbered(30))

    assert [b"28", b"29"] == values(await peek(admin, topic, last=2, max_records=2))
    assert numbered(30) == values(await peek(admin, topic, last=99, max_records=99))


async def test_peek_starts_at_an_offset_or_time(kafka, admin):
    topic = kafka.admin.create_topic()
    kafka.admin.produce(topic, numbered(30))
    at = (await peek(admin, topic, max_records=1)).records[0].timestamp

    assert [b"17"] == values(await peek(admin, topic, start=17, max_records=1))
    spec = OffsetSpec(timestamp=at)
    assert [b"0"] == values(await peek(admin, topic, start=spec, max_records=1))
    late = OffsetSpec(timestamp=at + 3_600_000)
    assert [] == values(await peek(admin, topic, start=late))


async def test_partitions_are_shown_in_the_order_of_timestamps(kafka, admin):
    topic = kafka.admin.create_topic(partitions=3)
    for number in range(9):
        kafka.admin.produce(topic, [b"%d" % number], partition=number % 3)
    peeked = await peek(admin, topic, max_records=5)

    times = [record.timestamp for record in peeked.records]
    assert 5 == len(times)
    assert sorted(times) == times
    one = await peek(admin, topic, partitions=[1])
    assert [b"1", b"4", b"7"] == values(one)


async def test_large_batches_are_read_completely(kafka, admin):
    topic = kafka.admin.create_topic(partitions=2)
    for partition in (0, 1):
        kafka.admin.produce(
            topic, [bytes(300_000)] * 3, partition=partition, linger_ms=60_000
        )
    peeked = await peek(admin, topic, max_records=6)

    assert 6 == len(peeked.records)
    assert {300_000} == {len(record.value) for record in peeked.records}


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_compressed_records_are_read(kafka, admin, codec):
    topic = kafka.admin.create_topic()
    kafka.admin.produce(topic, [b"a" * 1000] * 5, compression=codec)

    assert [b"a" * 1000] * 5 == values(await peek(admin, topic))


@pytest.mark.slow("a member joins in real time")
async def test_peek_from_a_group_uses_no_delivery(kafka, admin):
    queue = Queue(kafka.admin)
    queue.produce(numbered(10))
    async with queue.consumer(acknowledgement="explicit") as consumer:
        for record in await take(aiter(consumer), 4):
            record.accept()
        await consumer.commit(timeout=20)
    assert [b"4", b"5"] == values(
        await peek(admin, queue.topic, group_id=queue.group, max_records=2)
    )
    for _ in range(7):
        await peek(admin, queue.topic, group_id=queue.group)

    async with queue.consumer(acknowledgement="explicit") as consumer:
        records = await take(aiter(consumer), 6)
    assert list(range(4, 10)) == sorted(offsets(records))
    assert max(record.delivery_count for record in records) <= 2


async def test_offset_beyond_the_log_error_has_the_existing_range(kafka, admin):
    topic = kafka.admin.create_topic()
    kafka.admin.produce(topic, numbered(5))
    peeked = await peek(admin, topic, start=6)

    (error,) = peeked.errors.values()
    assert f"{topic}-0 has offsets 0 to 4, not 6" == str(error)
    assert () == peeked.records


async def test_unknown_partition_error_does_not_affect_others(kafka, admin):
    topic = kafka.admin.create_topic()
    kafka.admin.produce(topic, numbered(2))
    peeked = await peek(admin, topic, partitions=[0, 7])

    assert [b"0", b"1"] == values(peeked)
    assert [TopicPartition(topic, 7)] == list(peeked.errors)


async def test_unknown_topic_is_an_error(kafka, admin):
    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        await peek(admin, "no-such-topic-anywhere")
