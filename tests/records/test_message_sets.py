"""Messages of formats 0 and 1 are decoded as batches of format 2 are."""

import pytest

from sharecons.record import TimestampType
from sharecons.records.columns_reader import next_offset
from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode
from sharecons.records.errors import DamagedError
from tests.records.columns_reading import read_rows
from tests.records.golden_messages import APPEND_TIMESTAMP, JAVA, MESSAGES
from tests.records.message_sets import message, wrapper
from tests.records.reading import all_offsets, decode_payload, offsets, reasons

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
NO_TIMESTAMP = -1


def records_of(payload, acquired=((0, 1 << 40, 1),)):
    """Return offset, timestamp, key and value of the records, as both decoders do."""
    decoded = decode_payload(payload, acquired)
    assert [] == decoded.undecodable
    rows = read_rows(payload, acquired)
    records = [
        (record.offset, record.timestamp, record.key, record.value)
        for record in decoded.records
    ]
    assert records == [
        (offset, timestamp // 1000, key, value)
        for offset, timestamp, _, key, value, _, _ in rows
    ]
    assert [record.timestamp_type for record in decoded.records] == [
        row[2] for row in rows
    ]
    return records


@pytest.mark.parametrize("name", JAVA, ids=" ".join)
def test_message_set_that_java_wrote_has_its_records(name):
    time_of = {
        "magic0": lambda timestamp: NO_TIMESTAMP,
        "magic1": lambda timestamp: timestamp,
        "append_time": lambda timestamp: APPEND_TIMESTAMP,
    }[name[0]]

    assert [
        (offset, time_of(timestamp), key, value)
        for offset, timestamp, key, value in MESSAGES
    ] == records_of(JAVA[name])


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_format_1_has_the_type_of_its_timestamps(codec):
    for name, expected in (
        ("magic1", TimestampType.CREATE_TIME),
        ("append_time", TimestampType.LOG_APPEND_TIME),
    ):
        records = decode_payload(JAVA[name, codec]).records

        assert {expected} == {record.timestamp_type for record in records}


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
def test_compressed_messages_in_part_acquired_are_delivered_in_part(magic, codec):
    relative = [0, 1, 2] if magic else [10, 11, 12]
    inner = [message(at, b"%d" % at, magic=magic) for at in relative]
    payload = wrapper(12, inner, codec, magic=magic)

    decoded = decode_payload(payload, [(8, 8, 1), (11, 14, 4)])

    assert [(11, 4), (12, 4)] == [
        (record.offset, record.delivery_count) for record in decoded.records
    ]
    assert [(8, 8)] == decoded.gaps
    assert [(13, 14)] == decoded.unseen


def test_offsets_removed_by_compaction_are_gaps():
    inner = [message(at, b"", magic=0) for at in (10, 13)]
    payload = message(5, b"", magic=0) + wrapper(14, inner, magic=0)

    decoded = decode_payload(payload, [(4, 14, 1)])

    assert [5, 10, 13] == [record.offset for record in decoded.records]
    assert [4, 6, 7, 8, 9, 11, 12, 14] == offsets(decoded.gaps)


def test_relative_offsets_end_at_the_offset_of_the_wrapper():
    inner = [message(at, b"%d" % at) for at in (2, 5)]

    assert [(17, b"2"), (20, b"5")] == [
        (record[0], record[3]) for record in records_of(wrapper(20, inner))
    ]


@pytest.mark.parametrize("magic", [0, 1])
def test_nested_compressed_messages_are_decoded(magic):
    innermost = [message(at if magic else 20 + at, b"a", magic=magic) for at in (0, 1)]
    offset = 1 if magic else 21
    inner = [
        wrapper(offset, innermost, Codec.SNAPPY, magic=magic),
        message(offset + 1, b"b", magic=magic),
    ]
    payload = wrapper(22, inner, Codec.GZIP, magic=magic)

    assert [(20, b"a"), (21, b"a"), (22, b"b")] == [
        (record[0], record[3]) for record in records_of(payload)
    ]


def test_messages_nested_too_deep_are_undecodable():
    payload = message(0, b"a")
    for _ in range(9):
        payload = wrapper(0, [payload])

    (reason,) = reasons(decode_payload(payload, [(0, 0, 1)]))

    assert "nested more than" in reason


def test_formats_can_follow_each_other_in_any_order():
    payload = (
        message(0, b"0", magic=0)
        + encode([NewRecord(None, b"1")], base_offset=1, compression=Codec.GZIP)
        + wrapper(3, [message(0, b"2"), message(1, b"3")])
        + encode([NewRecord(None, b"4")], base_offset=4)
        + message(5, b"5")
    )

    assert [b"%d" % at for at in range(6)] == [
        record[3] for record in records_of(payload)
    ]


def test_columns_without_the_first_messages_are_the_others():
    payload = b"".join(message(at, b"%d" % at) for at in range(9))

    assert [b"4", b"5", b"7"] == [
        row[4] for row in read_rows(payload, [(4, 5, 1), (7, 7, 1)])
    ]


@pytest.mark.parametrize("codec", [None, *CODECS])
@pytest.mark.parametrize("magic", [0, 1])
def test_next_offset_is_after_the_last_complete_message(magic, codec):
    first = message(7, b"a", magic=magic)
    inner = [message(0 if magic else 9, b"a", magic=magic)]
    second = wrapper(9, inner, codec, magic=magic) if codec else inner[0]
    if codec is None and magic:
        second = message(9, b"a")

    assert 10 == next_offset(memoryview(first + second), 5)
    assert 8 == next_offset(memoryview(first + second[:-1]), 5)


DAMAGED = {
    "value": lambda: message(0, b"ab")[:-1] + b"x",
    "key size": lambda: message(0, None, attributes=0, magic=1)[:-8]
    + b"\xff\xff\xff\xfe\xff\xff\xff\xff",
    "no value": lambda: message(0, None, attributes=Codec.GZIP),
    "not compressed": lambda: message(0, b"ab", attributes=Codec.GZIP),
    "zstd": lambda: message(0, b"ab", attributes=Codec.ZSTD),
    "unknown codec": lambda: message(0, b"ab", attributes=7),
    "nothing inside": lambda: wrapper(0, []),
    "cut inside": lambda: wrapper(0, [message(0, b"ab")[:-1]]),
    "format 2 inside": lambda: wrapper(0, [encode([NewRecord()])]),
    "checksum inside": lambda: wrapper(0, [message(0, b"ab")[:-1] + b"x"]),
    "offset after the last": lambda: wrapper(0, [message(1, b"", magic=0)], magic=0),
    "negative offset": lambda: wrapper(0, [message(0, b""), message(2, b"")]),
    "offsets not ascending": lambda: wrapper(
        0, [message(1, b""), message(0, b""), message(0, b"")]
    ),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_message_affects_only_itself(kind):
    payload = DAMAGED[kind]() + message(1, b"next")

    decoded = decode_payload(payload, [(0, 1, 1)])

    assert [(1, b"next")] == [(each.offset, each.value) for each in decoded.records]
    assert [(0, 0)] == [each[:2] for each in decoded.undecodable]
    with pytest.raises(DamagedError, match="the message at offset 0"):
        read_rows(payload)


@pytest.mark.parametrize("name", JAVA, ids=" ".join)
def test_flipped_bit_of_a_message_causes_no_wrong_record_or_gap(name):
    payload = JAVA[name]
    right = {record[0]: record for record in records_of(payload)}
    acquired = [(999, 999, 1), (1000, 1003, 2)]
    for position in range(len(payload)):
        for bit in range(8):
            flipped = bytearray(payload)
            flipped[position] ^= 1 << bit
            decoded = decode_payload(flipped, acquired)

            assert list(range(999, 1004)) == all_offsets(decoded)
            values = [(record.key, record.value) for record in decoded.records]
            assert all(pair in [one[2:] for one in right.values()] for pair in values)


@pytest.mark.parametrize("name", JAVA, ids=" ".join)
def test_truncated_message_set_returns_its_complete_messages(name):
    payload = JAVA[name]
    for size in range(len(payload)):
        decoded = decode_payload(payload[:size], [(1000, 1002, 1)])

        assert [] == decoded.undecodable
        assert [] == decoded.gaps
        assert [1000, 1001, 1002] == all_offsets(decoded)


def test_decompressed_size_is_limited(monkeypatch):
    monkeypatch.setattr("sharecons.records.message_sets.LIMIT", 1000)
    large = wrapper(0, [message(0, bytes(2000))])

    (reason,) = reasons(decode_payload(large, [(0, 0, 1)]))

    assert "more than 1000 bytes" in reason
