"""Compressed batches and transaction markers, on both brokers."""

from random import randbytes

import pytest

from tests.kafka_plugin import Admin
from tests.scenarios.queue import Queue, take

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_records_of_every_compression_type_are_decoded(
    admin: Admin, codec: str
) -> None:
    queue = Queue(admin)
    values = [b"value %d of a batch that is worth compressing" % i for i in range(500)]
    queue.produce(values, compression=codec)
    async with queue.consumer() as consumer:
        records = await take(aiter(consumer), 500)

    assert [record.value for record in records] == values


@pytest.mark.parametrize("values", ["bytes", "memoryview"])
@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
async def test_large_values_are_received_unchanged(
    admin: Admin, codec: str, values: str
) -> None:
    queue = Queue(admin)
    sent = [b"%d" % number + randbytes(10_000 * number) for number in range(10)]
    queue.produce(sent, compression=codec)
    async with queue.consumer(values=values) as consumer:
        records = await take(aiter(consumer), 10)

    assert sent == [record.value for record in records]
    assert {values} == {type(record.value).__name__ for record in records}


async def test_transaction_markers_do_not_block_consumption(admin: Admin) -> None:
    queue = Queue(admin, **{"share.isolation.level": "read_committed"})
    for value, commits in ((b"a", True), (b"b", False), (b"c", True)):
        producer = admin.producer(transactional_id=f"{queue.topic}-{value!r}")
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(queue.topic, value)
        producer.commit_transaction() if commits else producer.abort_transaction()
    queue.produce([b"plain"])
    async with queue.consumer() as consumer:
        seen = await take(aiter(consumer), 3)
        seen += await take(aiter(consumer), 1, within=1.5)

    assert {record.value for record in seen} == {b"a", b"c", b"plain"}
