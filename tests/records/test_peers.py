"""Interoperability: kio and librdkafka decode our batches, and we decode kio's."""

import contextlib
import datetime
import io
import socket
import struct

import pytest
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
from tests.records.reading import decode_payload

SECONDS = st.integers(0, 4_000_000_000)
BYTES = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(), BYTES), max_size=3).map(tuple)


@st.composite
def new_records(draw):
    """Draw records of ascending offsets, at whole seconds (kio's resolution)."""
    deltas = sorted(draw(st.sets(st.integers(0, 100_000), min_size=1, max_size=20)))
    return [
        NewRecord(draw(BYTES), draw(BYTES), draw(HEADERS), draw(SECONDS) * 1000, delta)
        for delta in deltas
    ]


def moment(timestamp):
    seconds = timestamp // 1000
    return TZAwareMicros.parse(datetime.datetime.fromtimestamp(seconds, datetime.UTC))


def from_kio(record, base_offset):
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
def test_kio_decodes_our_batches(records, base_offset):
    payload = encode(records, base_offset=base_offset, base_timestamp=1_000)
    batch, size = read_batch(payload, 0)

    assert len(payload) == size
    assert tuple(from_kio(record, base_offset) for record in records) == batch.records


@given(new_records(), st.integers(0, 1 << 40))
def test_batches_of_kio_are_decoded(records, base_offset):
    written = io.BytesIO()
    write_new_batch(
        written,
        schema.NewRecordBatch(
            producer_id=i64(-1),
            producer_epoch=i16(-1),
            base_sequence=i32(-1),
            attributes=i16(0),
            records=tuple(from_kio(record, base_offset) for record in records),
        ),
    )
    payload = written.getvalue()
    first = base_offset + records[0].offset_delta
    decoded = decode_payload(
        payload, [(first, base_offset + records[-1].offset_delta, 1)]
    )

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


class MockBroker:
    """librdkafka's built-in mock broker, and a plain connection to it."""

    def __init__(self):
        self._owner = Producer(
            {"bootstrap.servers": "-", "test.mock.num.brokers": 1, "log_level": 0}
        )
        (broker,) = self._owner.list_topics(timeout=10).brokers.values()
        self.bootstrap = f"{broker.host}:{broker.port}"
        self._socket = socket.create_connection((broker.host, broker.port), timeout=10)

    def produce(self, topic, batch):
        """Send the batch unchanged, in a Produce request of version 3."""
        self._owner.list_topics(topic, timeout=10)  # creates the topic
        name = struct.pack(">h", len(topic)) + topic.encode()
        body = struct.pack(">hhii", -1, -1, 1000, 1) + name
        body += struct.pack(">iii", 1, 0, len(batch)) + batch
        request = struct.pack(">hhih", 0, 3, 1, -1) + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        with self._socket.makefile("rb") as responses:
            (size,) = struct.unpack(">i", responses.read(4))
            response = responses.read(size)
        (error,) = struct.unpack_from(">h", response, 8 + len(name) + 8)
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


@pytest.mark.slow("librdkafka polls in real time")
def test_librdkafka_decodes_our_batches_with_every_codec():
    big = NewRecord(b"big", b"spam and eggs " * 20_000, (), 1700000002000)
    records = [*RECORDS, big]
    with contextlib.closing(MockBroker()) as mock:
        for codec in Codec:
            mock.produce(codec.name, encode(records, compression=codec))
        # One consumer for all codecs: librdkafka takes half a second to start.
        messages = mock.consume([codec.name for codec in Codec], 5 * len(records))

    expected = [(r.key, r.value, list(r.headers) or None, r.timestamp) for r in records]
    for codec in Codec:
        assert expected == [
            (message.key(), message.value(), message.headers(), message.timestamp()[1])
            for message in messages
            if message.topic() == codec.name
        ]
