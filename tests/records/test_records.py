"""Encoding and decoding of records, and their methods."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.lock_scope import LockScope
from sharecons.protocol.acknowledge.lock_times import LockTimes
from sharecons.protocol.acknowledge.result_log import ResultLog
from sharecons.protocol.acknowledge.runs import Run
from sharecons.record import DETACHED, AcknowledgeType
from sharecons.records.batch import decode
from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode
from tests.protocol.message_factories import P0
from tests.records.reading import batch_with_body, decode_payload, record_fields, values


def only(record):
    (found,) = decode_payload(encode([record]), [(0, 0, 1)]).records
    return found


def test_a_hundred_headers():
    headers = tuple((f"name-{i}", b"%d" % i) for i in range(100))

    assert headers == only(NewRecord(headers=headers)).headers


@pytest.mark.parametrize("size", [63, 64, 127, 128, 8191, 8192, 1_100_000])
def test_lengths_of_any_number_of_bytes(size):
    record = NewRecord(b"k" * size, b"v" * size, (("n" * size, b"h" * size),))
    found = only(record)

    assert record[:3] == (found.key, found.value, found.headers)


def test_header_name_that_is_not_utf_8_keeps_its_bytes():
    body = b"\x14\0\0\0\x01\x01\x02\x04\xff\xfe\x01"
    (found,) = decode_payload(batch_with_body(body)).records

    ((name, value),) = found.headers
    assert b"\xff\xfe" == name.encode("utf-8", "surrogateescape")
    assert value is None
    assert found.headers == only(NewRecord(headers=found.headers)).headers


@pytest.mark.parametrize(
    "timestamp",
    [-1, 0, 63, 64, 8191, 8192, 1 << 20, -64, -65, -8193, (1 << 62), -(1 << 62)],
)
def test_timestamps_far_from_the_base_timestamp(timestamp):
    payload = encode([NewRecord(timestamp=timestamp)], base_timestamp=0)

    assert [timestamp] == [
        record.timestamp for record in decode_payload(payload).records
    ]


def test_the_widest_difference_of_timestamps():
    low, high = -(1 << 63), (1 << 63) - 1
    payload = encode([NewRecord(timestamp=-1)], base_timestamp=high)
    payload += encode([NewRecord(timestamp=low)], base_timestamp=0, base_offset=1)

    assert [-1, low] == [record.timestamp for record in decode_payload(payload).records]


@pytest.mark.parametrize("delta", [0, 63, 64, 8191, 8192, (1 << 31) - 1])
def test_offsets_far_from_the_base_offset(delta):
    record = NewRecord(offset_delta=delta)
    (found,) = decode_payload(encode([record], base_offset=7)).records

    assert 7 + delta == found.offset


def test_varints_may_have_redundant_bytes():
    # 0x80 0x00 is 0 in two bytes: some encoders reserve space for a length.
    body = b"\x98\x80\x00\0\x80\0\x80\x80\0\x81\0\x82\x00v\0"

    assert [b"v"] == values(batch_with_body(body))


def test_record_has_topic_partition_and_offset():
    (found,) = decode(encode([NewRecord()]), [(0, 0, 2)], "t", 9, DETACHED).records

    assert ("t", 9, 2) == (found.topic, found.partition, found.delivery_count)


def test_record_methods_call_the_ack_target():
    lease = Lease(
        topic="t",
        share_partition=P0,
        acquired=((0, 1, 1),),
        payload=b"",
        locks=LockTimes(0.0, 0.0, 100.0),
        lock_scope=LockScope(),
        owner=AckBatcher(lambda: None, ResultLog(lambda: None, lambda: 0.0)),
    )
    payload = encode([NewRecord(), NewRecord()])
    first, second = decode(payload, lease.acquired, "t", 0, lease).records
    lease.set_offsets(range(2))

    second.reject()
    first.accept()

    runs = [Run(0, 0, AcknowledgeType.ACCEPT), Run(1, 1, AcknowledgeType.REJECT)]
    assert [(100.0, runs)] == lease.take_runs()
    assert 100.0 == second.lock_deadline
    assert 100.0 == second.lock_remaining


def test_records_can_be_pickled():
    records = decode_payload(encode([NewRecord(b"k", b"v", (("h", None),), 5)])).records

    assert record_fields(records) == record_fields(pickle.loads(pickle.dumps(records)))


HEADERS = st.lists(st.tuples(st.text(), st.none() | st.binary())).map(tuple)
RECORDS = st.lists(
    st.builds(
        NewRecord,
        key=st.none() | st.binary(),
        value=st.none() | st.binary(),
        headers=HEADERS,
        timestamp=st.integers(0, 1 << 50),
        offset_delta=st.none(),
    ),
    min_size=1,
)


@given(RECORDS, st.sampled_from(Codec), st.integers(0, 1 << 62))
def test_encoded_records_are_decoded(records, codec, base_offset):
    payload = encode(records, base_offset=base_offset, compression=codec)
    decoded = decode_payload(
        payload, [(base_offset, base_offset + len(records) - 1, 1)]
    )

    assert records == [
        NewRecord(record.key, record.value, record.headers, record.timestamp)
        for record in decoded.records
    ]
    assert [base_offset + i for i in range(len(records))] == [
        record.offset for record in decoded.records
    ]
