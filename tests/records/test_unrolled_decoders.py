"""The decoders agree: `record_decoder`, `columns` and `large_records`.

docs/design.md says why they do not come from one template.
"""

import ast
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.record import DETACHED
from sharecons.records.batch import decode
from sharecons.records.batch_header import CRC_START, HEADER_SIZE, Header
from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode
from sharecons.records.errors import DamagedError
from sharecons.records.large_records import LARGE, read_large_records
from sharecons.records.record_decoder import END_OF_SPANS, read_records
from tests.records.columns_reading import read_rows
from tests.records.reading import (
    EVERYTHING,
    batch_with_body,
    decode_payload,
    record_fields,
    with_checksum,
)
from tests.records.test_columns import expected, payloads

RECORDS = Path(__file__).parent.parent.parent / "sharecons" / "records"

VARINT = """\
number = data[{at}]
if number < 0x80:
    {skip_one}
else:
    high = data[{next}]
    if high < 0x80:
        number += (high << 7) - 0x80
        {skip_two}
    else:
        number, position = {call}
"""
"""A varint, unrolled: one or two bytes, or more by a call."""

PLACES = {
    "position": ("position + 1", "position += 1", "position += 2"),
    "position + 1": ("position + 2", "position += 2", "position += 3"),
}
"""By the place of a varint: the second byte, and how to pass one byte or two."""


def varint(at: str, call: str) -> str:
    second, skip_one, skip_two = PLACES[at]
    return VARINT.format(
        at=at, next=second, skip_one=skip_one, skip_two=skip_two, call=call
    )


@pytest.mark.parametrize(
    ("module", "decoder", "call"),
    [
        (
            "record_decoder",
            "read_records",
            r"read_varint\(data, {at}, (?:VARINT|VARLONG)\)",
        ),
        ("columns", "read_batch", r"_var(?:int|long)\(data, {at}\)"),
    ],
)
def test_unrolled_varints_have_one_text(module, decoder, call):
    text = (RECORDS / f"{module}.py").read_text()
    functions = {getattr(node, "name", ""): node for node in ast.parse(text).body}
    source = ast.get_source_segment(text, functions[decoder])
    assert source is not None
    starts = list(re.finditer(r"^( +)number = data\[(.*)\]$", source, re.MULTILINE))

    assert len(starts) == 5  # length, timestamp, offset, key, value
    for found in starts:
        indent, at = found.groups()
        block = source[found.start() :].splitlines()[: VARINT.count("\n")]
        text = "".join(line.removeprefix(indent) + "\n" for line in block)
        function = re.search(call.format(at=re.escape(at)), text)
        assert function is not None
        assert text == varint(at, function[0])


def columns_of(batch):
    try:
        return read_rows(batch)
    except DamagedError:
        return None


def records_of(batch):
    decoded = decode_payload(batch, ((0, 1 << 40, 1),))
    return None if decoded.undecodable else expected(batch, ((0, 1 << 40, 1),))


def read_directly(read, batch, data, acquired, *more):
    """Return the records that a decoder returns for a batch, and their size."""
    header = Header(batch, 0)
    records = []
    try:
        start = HEADER_SIZE - CRC_START
        spans = [*acquired, END_OF_SPANS]
        size = read(header, data, start, spans, "orders", 3, DETACHED, records, *more)
    except (DamagedError, IndexError):
        return None
    return record_fields(records), size


def copied(batch, acquired=EVERYTHING):
    """Return what the decoder of small records reads."""
    return read_directly(read_records, batch, batch[CRC_START:], acquired)


def sliced(batch, acquired=EVERYTHING):
    """Return what the decoder of large records reads; they need not be large."""
    view = memoryview(bytearray(batch))[CRC_START:]
    return read_directly(read_large_records, batch, view, acquired, False)


TEN = encode(
    [
        NewRecord(key=b"k" * n, value=b"%d" % n, headers=(("name", b"v"),) * (n % 3))
        for n in range(10)
    ],
    base_offset=100,
)


@given(position=st.integers(61, len(TEN) - 1), byte=st.integers(0, 255))
def test_damaged_batch_with_a_correct_checksum_is_damaged_for_all(position, byte):
    batch = bytearray(TEN)
    batch[position] = byte
    batch = with_checksum(batch)

    assert records_of(batch) == columns_of(batch)
    assert copied(batch) == sliced(batch)


@given(body=st.binary(max_size=60), count=st.integers(0, 5), last=st.integers(0, 9))
def test_random_body_with_a_correct_checksum_is_the_same_for_all(body, count, last):
    batch = batch_with_body(body, count=count, last_offset_delta=last)

    assert records_of(batch) == columns_of(batch)
    assert copied(batch) == sliced(batch)


@given(bounds=st.lists(st.integers(0, 12), unique=True, max_size=6).map(sorted))
def test_acquired_records_are_the_same_for_small_and_large_records(bounds):
    pairs = zip(bounds[::2], bounds[1::2], strict=False)
    acquired = [(first, last, 1) for first, last in pairs]

    assert copied(TEN, acquired) == sliced(TEN, acquired)


@given(key=st.binary(max_size=200), header=st.binary(max_size=200))
def test_keys_and_headers_of_any_length_are_read_around_large_values(key, header):
    record = NewRecord(key=key, value=b"v" * LARGE, headers=(("name", header),))
    batch = encode([record, record], base_offset=7)

    expected_records, size = copied(batch)
    decoded = decode(memoryview(bytearray(batch)), EVERYTHING, "orders", 3, DETACHED)

    assert len(decoded.records) == 2
    assert expected_records == record_fields(decoded.records)
    assert size == decoded.size


@pytest.mark.parametrize("cut", [1, LARGE, LARGE + 30])
def test_large_record_that_is_cut_off_is_damaged(cut):
    whole = encode([NewRecord(key=b"key", value=b"v" * LARGE)])
    batch = batch_with_body(whole[HEADER_SIZE:-cut], count=1, last_offset_delta=0)

    decoded = decode(memoryview(batch), ((0, 0, 1),), "orders", 3, DETACHED)

    assert not decoded.records
    assert [(0, 0)] == [each[:2] for each in decoded.undecodable]


def test_large_record_holds_no_memory_of_the_response():
    payload = bytearray(encode([NewRecord(key=b"k" * 100, value=b"v" * LARGE)]))

    records = decode(payload, EVERYTHING, "orders", 3, DETACHED).records

    payload.clear()  # raises BufferError while there is a view
    assert b"v" * LARGE == records[0].value


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("size", [0, 10, LARGE])
def test_value_views_are_read_only_and_equal_the_bytes(codec, size):
    new = [NewRecord(key=b"k", value=b"v" * size, headers=(("name", b"h"),))] * 3
    payload = bytearray(encode([*new, NewRecord()], compression=codec))

    arguments = payload, EVERYTHING, "orders", 3, DETACHED
    copies, views = decode(*arguments), decode(*arguments, value_views=True)
    *values, null = [record.value for record in views.records]

    assert null is None
    for value in values:
        assert isinstance(value, memoryview)
        assert value.readonly
    assert record_fields(copies.records) == record_fields(views.records)
    assert copies.size == views.size


@given(payload=payloads())
def test_value_views_equal_the_bytes_for_all_batches(payload):
    arguments = payload, EVERYTHING, "orders", 3, DETACHED
    copies, views = decode(*arguments), decode(*arguments, value_views=True)

    assert record_fields(copies.records) == record_fields(views.records)
    assert copies.gaps == views.gaps
    assert len(copies.undecodable) == len(views.undecodable)


def test_record_with_a_value_view_is_pickled_with_bytes():
    payload = encode([NewRecord(key=b"k", value=b"value")])
    record = decode(
        payload, EVERYTHING, "orders", 3, DETACHED, value_views=True
    ).records[0]

    copy = pickle.loads(pickle.dumps(record))

    assert isinstance(record.value, memoryview)
    assert b"value" == copy.value
    assert isinstance(copy.value, bytes)
