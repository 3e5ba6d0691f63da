"""The two unrolled decoders, `record_decoder` and `columns`, agree.

docs/design.md says why they do not come from one template.
"""

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.records.encoder import NewRecord, encode
from sharecons.records.errors import DamagedError
from tests.records.columns_reading import read_rows
from tests.records.reading import batch_with_body, decode_payload, with_checksum
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


TEN = encode(
    [
        NewRecord(key=b"k" * n, value=b"%d" % n, headers=(("name", b"v"),) * (n % 3))
        for n in range(10)
    ],
    base_offset=100,
)


@given(position=st.integers(61, len(TEN) - 1), byte=st.integers(0, 255))
def test_damaged_batch_with_a_correct_checksum_is_damaged_for_both(position, byte):
    batch = bytearray(TEN)
    batch[position] = byte
    batch = with_checksum(batch)

    assert records_of(batch) == columns_of(batch)


@given(body=st.binary(max_size=60), count=st.integers(0, 5), last=st.integers(0, 9))
def test_random_body_with_a_correct_checksum_is_the_same_for_both(body, count, last):
    batch = batch_with_body(body, count=count, last_offset_delta=last)

    assert records_of(batch) == columns_of(batch)


@given(payload=payloads())
def test_batches_of_records_are_the_same_for_both(payload):
    assert records_of(payload) == columns_of(payload)
