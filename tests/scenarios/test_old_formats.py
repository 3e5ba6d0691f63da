"""Messages of formats 0 and 1 in the log of an upgraded cluster, on both brokers."""

import pytest

from sharecons.admin import ShareGroupAdmin
from sharecons.inspection.peek import peek
from sharecons.records.compression import Codec
from tests.kafka_plugin import Admin, EmbeddedCluster, Kafka
from tests.records.message_sets import message, wrapper
from tests.scenarios.queue import Queue, take

pytestmark = pytest.mark.anyio

CODECS = (None, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
SIZE = 3  # messages of each format and codec
PADDING = b"padding"


def value(magic: int, codec: Codec | None, index: int) -> bytes:
    name = "none" if codec is None else codec.name
    return f"format {magic}, {name}, message {index}".encode()


VALUES = [
    value(magic, codec, index)
    for magic in (0, 1)
    for codec in CODECS
    for index in range(SIZE)
]


def old_log() -> bytes:
    """Return a log of both formats with all codecs, the offsets from 0."""
    log = b""
    base = 0
    for magic in (0, 1):
        for codec in CODECS:
            first = 0 if codec and magic else base
            messages = [
                message(first + at, value(magic, codec, at), magic=magic)
                for at in range(SIZE)
            ]
            last = base + SIZE - 1
            log += wrapper(last, messages, codec, magic=magic) if codec else b""
            log += b"" if codec else b"".join(messages)
            base += SIZE
    return log


def write_log(kafka: Kafka, queue: Queue) -> None:
    """Make `old_log` the log of a topic, on the broker's disk if it has one.

    Kafka 4 cannot write these formats. So a batch with as many offsets is written and
    then replaced on the disk. Another message fills the rest of its bytes.
    """
    log = old_log()
    if isinstance(kafka.cluster, EmbeddedCluster):
        log += message(len(VALUES), PADDING)
        kafka.cluster.broker.load_log(queue.topic, 0, log)
        return
    queue.produce([bytes(200)] * (len(VALUES) + 1), linger_ms=60_000)
    (node_id,) = kafka.cluster.brokers
    file = kafka.cluster.log_directory(node_id) / f"{queue.topic}-0" / f"{0:020d}.log"
    left = file.stat().st_size - len(log) - len(message(len(VALUES), PADDING))
    assert left >= 0
    with file.open("r+b") as segment:
        segment.write(log + message(len(VALUES), PADDING + bytes(left)))


async def test_records_of_old_formats_are_delivered(admin: Admin, kafka: Kafka) -> None:
    queue = Queue(admin)
    write_log(kafka, queue)

    async with queue.consumer() as consumer:
        records = await take(aiter(consumer), len(VALUES) + 1)

    assert VALUES == [record.value for record in records[:-1]]
    assert list(range(len(VALUES) + 1)) == [record.offset for record in records]
    assert {1} == {record.delivery_count for record in records}


async def test_records_of_old_formats_are_peeked(admin: Admin, kafka: Kafka) -> None:
    queue = Queue(admin)
    write_log(kafka, queue)

    async with ShareGroupAdmin(
        bootstrap_servers=admin.bootstrap_servers, network=admin.network
    ) as client:
        peeked = await peek(client, queue.topic, start=2, max_records=len(VALUES) - 3)

    assert () == peeked.damaged
    assert sorted(VALUES[2:-1]) == sorted(record.value for record in peeked.records)
