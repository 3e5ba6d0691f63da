"""Batches with a correct checksum and invalid contents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.records.batch_header import HEADER_SIZE
from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode
from sharecons.records.errors import UNREADABLE
from tests.records.reading import (
    all_offsets,
    batch_with_body,
    decode_payload,
    offsets,
    reasons,
)

THIRD = encode([NewRecord(None, b"third"), NewRecord(None, b"4th")], base_offset=8)
"""A correct batch at offsets 8 and 9, to follow the invalid one."""

RECORD = b"\x0e\0\0\0\x01\x02v\0"
"""A record with offset delta 0, no key, value "v" and no header."""


def test_unknown_codec_is_undecodable():
    decoded = decode_payload(
        batch_with_body(RECORD, attributes=7) + THIRD, [(0, 0, 1), (8, 9, 1)]
    )

    assert [f"{UNREADABLE}unknown compression codec 7"] == reasons(decoded)
    assert [8, 9] == [record.offset for record in decoded.records]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_invalid_compressed_bytes_are_undecodable(codec):
    decoded = decode_payload(
        batch_with_body(b"garbage!", attributes=codec) + THIRD, [(0, 9, 1)]
    )

    (reason,) = reasons(decoded)
    assert reason.startswith(Codec(codec).name.lower() + ": ")
    assert [8, 9] == [record.offset for record in decoded.records]
    assert list(range(10)) == all_offsets(decoded)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_invalid_compressed_bytes_that_are_not_acquired_are_ignored(codec):
    decoded = decode_payload(
        batch_with_body(b"garbage!", attributes=codec) + THIRD, [(5, 9, 1)]
    )

    assert [] == decoded.undecodable
    assert [(5, 7)] == decoded.gaps


HUGE = b"\xfe\xff\xff\xff\x0f"  # 2**31 - 1, as a varint
INVALID_BODIES = {
    "nothing where a record should be": b"",
    "a record without an end": RECORD[:-1],
    "a record's negative length": b"\x0f" + RECORD[1:],
    "a record's huge length": HUGE + RECORD[1:],
    "a record longer than what it holds": b"\x10" + RECORD[1:] + b"\0",
    "a record shorter than what it holds": b"\x0c" + RECORD[1:],
    "a length of five bytes and more": b"\xff" * 5 + RECORD[1:],
    "a length of eleven bytes": b"\x8e" + b"\x80" * 10 + RECORD[1:],
    "a length of 33 bits": b"\x80\x80\x80\x80\x10" + RECORD[1:],
    "a timestamp of eleven bytes": b"\x22\0" + b"\x80" * 10 + b"\0\0\x01\x02v\0",
    "a timestamp of 65 bits": b"\x20\0" + b"\xff" * 9 + b"\x02\0\x01\x02v\0",
    "an offset before its batch": b"\x0e\0\0\x01\x01\x02v\0",
    "an offset beyond its batch": b"\x0e\0\0\x02\x01\x02v\0",
    "a huge offset": b"\x16\0\0" + HUGE + b"\x01\x02v\0",
    "an offset of six bytes": b"\x18\0\0" + b"\x80" * 5 + b"\0\x01\x02v\0",
    "a key's negative length": b"\x0e\0\0\0\x03\x02v\0",
    "a key's huge length": b"\x16\0\0\0" + HUGE + b"\x02v\0",
    "a key of five bytes' length and more": b"\x18\0\0\0" + b"\xff" * 6 + b"v\0",
    "a value's negative length": b"\x0e\0\0\0\x01\x05v\0",
    "a value's huge length": b"\x16\0\0\0\x01" + HUGE + b"v\0",
    "a value of five bytes' length and more": b"\x18\0\0\0\x01" + b"\xff" * 6 + b"\0",
    "a negative number of headers": b"\x0e\0\0\0\x01\x02v\x01",
    "a huge number of headers": b"\x16\0\0\0\x01\x02v" + HUGE,
    "a header's name that is null": b"\x12\0\0\0\x01\x02v\x02\x01\x01",
    "a header's name of huge length": b"\x1a\0\0\0\x01\x02v\x02" + HUGE + b"\x01",
    "a header's value of negative length": b"\x12\0\0\0\x01\x02v\x02\0\x03",
    "a header's value of huge length": b"\x1a\0\0\0\x01\x02v\x02\0" + HUGE,
    "bytes behind the last record": RECORD + b"\0",
}


def snappy_literal(body):
    """Return a snappy block that contains the bytes as a literal."""
    assert len(body) <= 60
    return bytes([len(body), (len(body) - 1) << 2]) + body


@pytest.mark.parametrize("body", INVALID_BODIES.values(), ids=INVALID_BODIES.keys())
def test_invalid_body_with_a_correct_checksum_is_undecodable(body):
    decoded = decode_payload(batch_with_body(body) + THIRD, [(0, 9, 1)])

    assert [8, 9] == [record.offset for record in decoded.records]
    assert [(0, 7)] == [one[:2] for one in decoded.undecodable]


@pytest.mark.parametrize("last", [0, 9])
@pytest.mark.parametrize("body", INVALID_BODIES.values(), ids=INVALID_BODIES.keys())
def test_invalid_body_at_the_end_is_undecodable(body, last):
    decoded = decode_payload(batch_with_body(body), [(0, last, 1)])

    assert [(0, 0)] == [one[:2] for one in decoded.undecodable]


def test_invalid_record_is_found_if_the_batch_end_is_not_acquired():
    longer = b"\x14\0\0\0\x01\x02v\0"  # than the rest of the batch
    decoded = decode_payload(
        batch_with_body(longer, last_offset_delta=5) + THIRD, [(0, 0, 1)]
    )

    assert ["a record has an invalid length"] == reasons(decoded)


def test_bytes_after_a_last_record_that_is_not_acquired():
    second = b"\x0e\0\0\x06\x01\x02w\0"
    body = RECORD + second + b"\0"
    decoded = decode_payload(
        batch_with_body(body, count=2, last_offset_delta=3), [(0, 2, 1)]
    )

    assert ["bytes are left over after the last record"] == reasons(decoded)


NON_EMPTY_BODIES = {name: body for name, body in INVALID_BODIES.items() if body}


@pytest.mark.parametrize("body", NON_EMPTY_BODIES.values(), ids=NON_EMPTY_BODIES.keys())
def test_invalid_body_in_compressed_data_is_undecodable(body):
    decoded = decode_payload(
        batch_with_body(snappy_literal(body), attributes=Codec.SNAPPY) + THIRD,
        [(0, 9, 1)],
    )

    assert [8, 9] == [record.offset for record in decoded.records]
    assert [(0, 7)] == [one[:2] for one in decoded.undecodable]


def test_damaged_record_removes_the_previous_ones_of_its_batch():
    good = b"\x0e\0\0\0\x01\x02v\0" + b"\x0e\0\0\x02\x01\x02w\0"
    bad = b"\x0e\0\0\x04\x01\x04x\0"
    decoded = decode_payload(
        batch_with_body(good + bad, count=3, last_offset_delta=2) + THIRD
    )

    assert [8, 9] == [record.offset for record in decoded.records]


@pytest.mark.parametrize("deltas", [(1, 0), (0, 0), (2, 1), (0, 2, 2), (0, 3, 1)])
@pytest.mark.parametrize(
    "acquired", [[(0, 9, 1)], [(i, i, 1) for i in range(10)], [(0, 0, 1), (2, 9, 1)]]
)
def test_descending_offsets_are_undecodable(deltas, acquired):
    payload = encode(
        [NewRecord(offset_delta=delta) for delta in deltas], last_offset_delta=5
    )
    decoded = decode_payload(payload, acquired)

    assert [] == decoded.records
    assert offsets(acquired) == all_offsets(decoded)
    assert set(reasons(decoded)) == {"the offsets of the records are not ascending"}


def test_descending_offsets_that_are_not_acquired_are_undecodable():
    payload = encode([NewRecord(offset_delta=delta) for delta in (3, 1, 5)])
    decoded = decode_payload(payload, [(5, 5, 1)])

    assert ["the offsets of the records are not ascending"] == reasons(decoded)


@pytest.mark.parametrize("count", [-1, 0, 2, 1_000, (1 << 31) - 1])
def test_wrong_number_of_records_is_undecodable(count):
    decoded = decode_payload(batch_with_body(RECORD, count=count) + THIRD)

    assert [8, 9] == [record.offset for record in decoded.records]
    assert [(0, 7)] == [one[:2] for one in decoded.undecodable]


def test_negative_number_of_records_is_undecodable():
    decoded = decode_payload(batch_with_body(b"", count=-1), [(0, 0, 1)])

    assert ["the batch has a negative number of records"] == reasons(decoded)


@pytest.mark.parametrize("last_offset_delta", [-1, -(1 << 31)])
def test_last_offset_before_the_base_offset_is_undecodable(last_offset_delta):
    payload = batch_with_body(RECORD, last_offset_delta=last_offset_delta) + THIRD
    decoded = decode_payload(payload, [(0, 9, 1)])

    assert [8, 9] == [record.offset for record in decoded.records]
    assert [(0, 7, "the batch has invalid offsets")] == decoded.undecodable


def test_last_offset_above_the_maximum_is_undecodable():
    batch = bytearray(batch_with_body(RECORD, last_offset_delta=5))
    batch[:8] = ((1 << 63) - 2).to_bytes(8, "big")
    decoded = decode_payload(bytes(batch), [((1 << 63) - 3, (1 << 63) - 1, 1)])

    assert ["the batch has invalid offsets"] == reasons(decoded)


@given(st.binary(max_size=400))
def test_random_bytes_as_records_never_raise(body):
    for count in (1, 3, (1 << 31) - 1):
        decoded = decode_payload(
            batch_with_body(body, count=count, last_offset_delta=5), [(0, 5, 1)]
        )

        assert list(range(6)) == all_offsets(decoded)


@given(st.data())
def test_records_with_random_bytes_in_them_never_raise(data):
    body = bytearray(RECORD * 3 + THIRD[HEADER_SIZE:])
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(body) - 1))
        body[position] = data.draw(st.integers(0, 255))
    decoded = decode_payload(
        batch_with_body(body, count=5, last_offset_delta=5), [(0, 5, 1)]
    )

    assert list(range(6)) == all_offsets(decoded)
