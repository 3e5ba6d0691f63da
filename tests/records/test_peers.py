"""kio and librdkafka as oracles: they read what is written here, and the reverse."""

import contextlib
import datetime
import io
import socket
import struct

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from hypothesis import given
from hypothesis import strategies as st
from kio.records import schema
from kio.records.readers import read_batch
from kio.records.writers import write_new_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode
from tests.records.golden import RECORDS
from tests.records.reading import read

SECONDS = st.integers(0, 4_000_000_000)
BYTES = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(), BYTES), max_size=3).map(tuple)


@st.composite
def new_records(draw):
    """Draw records of ascending offsets, at whole seconds, which is all kio keeps."""
    deltas = sorted(draw(st.sets(st.integers(0, 100_000), min_size=1, max_size=20)))
    return [
        NewRecord(draw(BYTES), draw(BYTES), draw(HEADERS), draw(SECONDS) * 1000, delta)
        for delta in deltas
    ]


def moment(timestamp):
    seconds = timestamp // 1000
    return TZAwareMicros.parse(datetime.datetime.fromtimestamp(seconds, datetime.UTC))


def of_kio(record, base_offset):
    return schema.Record(
        attributes=i8(0),
        timestamp=moment(record.timestamp),
        offset=i64(base_offset + record.offset_delta),
        key=record.key,
        value=record.value,
        headers=tuple(
            schema.RecordHeader(key=name.encode(), value=value)
            for name, value in record.headers
        ),
    )


@given(new_records(), st.integers(0, 1 << 40))
def test_kio_reads_what_is_encoded(records, base_offset):
    payload = encode(records, base_offset=base_offset, base_timestamp=1_000)
    batch, size = read_batch(payload, 0)

    assert len(payload) == size
    assert tuple(of_kio(record, base_offset) for record in records) == batch.records


@given(new_records(), st.integers(0, 1 << 40))
def test_what_kio_writes_is_decoded(records, base_offset):
    written = io.BytesIO()
    write_new_batch(
        written,
        schema.NewRecordBatch(
            producer_id=i64(-1),
            producer_epoch=i16(-1),
            base_sequence=i32(-1),
            attributes=i16(0),
            records=tuple(of_kio(record, base_offset) for record in records),
        ),
    )
    payload = written.getvalue()
    first = base_offset + records[0].offset_delta
    decoded = read(payload, [(first, base_offset + records[-1].offset_delta, 1)])

    assert records == [
        NewRecord(
            record.key,
            record.value,
            record.headers,
            record.timestamp,
            record.offset - base_offset,
        )
        for record in decoded.records
    ]


class Mock:
    """The broker that librdkafka has in itself, and a plain connection to it."""

    def __init__(self):
        self._owner = Producer(
            {"bootstrap.servers": "-", "test.mock.num.brokers": 1, "log_level": 0}
        )
        (broker,) = self._owner.list_topics(timeout=10).brokers.values()
        self.bootstrap = f"{broker.host}:{broker.port}"
        self._socket = socket.create_connection((broker.host, broker.port), timeout=10)

    def produce(self, topic, batch):
        """Send the batch as it is, in a Produce request of version 3."""
        self._owner.list_topics(topic, timeout=10)  # makes it
        name = struct.pack(">h", len(topic)) + topic.encode()
        body = struct.pack(">hhii", -1, -1, 1000, 1) + name
        body += struct.pack(">iii", 1, 0, len(batch)) + batch
        request = struct.pack(">hhih", 0, 3, 1, -1) + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        with self._socket.makefile("rb") as answers:
            (size,) = struct.unpack(">i", answers.read(4))
            answer = answers.read(size)
        (error,) = struct.unpack_from(">h", answer, 8 + len(name) + 8)
        assert 0 == error

    def consume(self, topics, count):
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "oracle",
                "check.crcs": True,
            }
        )
        consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING) for name in topics])
        messages = consumer.consume(count, timeout=10)
        consumer.close()
        return messages

    def close(self):
        self._socket.close()


def test_librdkafka_reads_what_is_encoded_by_any_codec():
    big = NewRecord(b"big", b"spam and eggs " * 20_000, (), 1700000002000)
    records = [*RECORDS, big]
    with contextlib.closing(Mock()) as mock:
        for codec in Codec:
            mock.produce(codec.name, encode(records, compression=codec))
        # One consumer for all: librdkafka takes half a second to begin.
        messages = mock.consume([codec.name for codec in Codec], 5 * len(records))

    expected = [(r.key, r.value, list(r.headers) or None, r.timestamp) for r in records]
    for codec in Codec:
        assert expected == [
            (message.key(), message.value(), message.headers(), message.timestamp()[1])
            for message in messages
            if message.topic() == codec.name
        ]
