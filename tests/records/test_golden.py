"""Batches encoded by Kafka's Java classes and by librdkafka."""

import pytest

from sharecons.record import TimestampType
from sharecons.records.encoder import NewRecord, encode
from tests.records.golden import JAVA, LIBRDKAFKA, RECORDS
from tests.records.reading import (
    all_offsets,
    decode_payload,
    offsets,
    record_fields,
)

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.mark.parametrize("codec", CODECS)
def test_batches_of_kafka_are_decoded(codec):
    decoded = decode_payload(JAVA[codec], [(1000, 1002, 4)])

    expected = [
        (1000 + i, record.timestamp, record.key, record.value, record.headers, 4)
        for i, record in enumerate(RECORDS)
    ]
    assert expected == record_fields(decoded.records)
    assert {TimestampType.CREATE_TIME} == {r.timestamp_type for r in decoded.records}


@pytest.mark.parametrize("codec", CODECS)
def test_batches_of_librdkafka_are_decoded(codec):
    decoded = decode_payload(LIBRDKAFKA[codec], [(0, 2, 1)])

    expected = [
        (i, record.timestamp, record.key, record.value, record.headers, 1)
        for i, record in enumerate(RECORDS)
    ]
    assert expected == record_fields(decoded.records)


def test_batches_are_encoded_as_by_kafka():
    written = encode(
        RECORDS,
        base_offset=1000,
        transactional=True,
        partition_leader_epoch=2,
        producer_id=77,
        producer_epoch=3,
        base_sequence=5,
    )

    assert JAVA["none"] == written


def test_batches_are_encoded_as_by_librdkafka():
    written = encode(RECORDS, partition_leader_epoch=0)

    assert LIBRDKAFKA["none"] == written


def test_log_append_time_replaces_the_producers_timestamp():
    decoded = decode_payload(JAVA["append_time"], [(1000, 1002, 1)])

    assert [1800000000000] * 3 == [record.timestamp for record in decoded.records]
    assert {TimestampType.LOG_APPEND_TIME} == {
        record.timestamp_type for record in decoded.records
    }


def test_log_append_time_is_encoded_as_by_kafka():
    written = encode(RECORDS, base_offset=1000, append_timestamp=1800000000000)

    assert JAVA["append_time"] == written


def test_transaction_marker_is_a_gap():
    decoded = decode_payload(JAVA["commit"], [(1003, 1003, 1)])

    assert [(1003, 1003)] == decoded.gaps
    assert [1003] == all_offsets(decoded)


def test_transaction_marker_is_encoded_as_by_kafka():
    marker = NewRecord(b"\0\0\0\1", b"\0\0\0\0\0\x09", (), 1700000002000)
    written = encode(
        [marker],
        base_offset=1003,
        transactional=True,
        control=True,
        partition_leader_epoch=2,
        producer_id=77,
        producer_epoch=3,
    )

    assert JAVA["commit"] == written


def test_compacted_offsets_are_gaps():
    decoded = decode_payload(JAVA["compacted"], [(1000, 1009, 1)])

    expected = [
        (1002, 1700000000002, b"k2", b"v2", (), 1),
        (1003, 1700000000003, b"k3", b"v3", (), 1),
        # A tombstone: its batch's base timestamp is the time of its removal.
        (1007, 1700000000007, b"k7", None, (), 1),
    ]
    assert expected == record_fields(decoded.records)
    assert [1000, 1001, 1004, 1005, 1006, 1008, 1009] == offsets(decoded.gaps)


def test_batch_emptied_by_compaction_is_a_gap():
    decoded = decode_payload(JAVA["emptied"], [(1000, 1009, 1)])

    assert [(1000, 1009)] == decoded.gaps
    assert list(range(1000, 1010)) == all_offsets(decoded)


@pytest.mark.parametrize(("magic", "timestamp"), [(0, -1), (1, 1700000000000)])
def test_message_of_a_format_before_kafka_0_11_is_decoded(magic, timestamp):
    decoded = decode_payload(JAVA[f"magic{magic}"], [(1000, 1000, 1)])

    assert [(1000, timestamp, b"k", b"v", (), 1)] == record_fields(decoded.records)
