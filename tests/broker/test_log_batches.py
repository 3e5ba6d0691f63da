"""Encoded batches: splitting, validation, finalization, markers."""

import zlib

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.log.batches import (
    AppendError,
    decode_header,
    encode_marker,
    finalize,
    has_valid_crc,
    split_batches,
)
from sharecons.testing.broker.log.records import decode_heads
from sharecons.testing.broker.log.rules import LogRules, check_batch
from tests.broker.raw_batches import NOW, BatchHead, batch, patched, sealed

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
XERIAL = b"\x82SNAPPY\x00" + b"\x00\x00\x00\x01" * 2


def gzip(body):
    return zlib.compress(body, wbits=31)


def bare_snappy(body):
    return bytes(cramjam.snappy.compress_raw(body))


def framed_snappy(body):
    halves = body[: len(body) // 2], body[len(body) // 2 :]
    blocks = (bare_snappy(half) for half in halves)
    return XERIAL + b"".join(len(block).to_bytes(4, "big") + block for block in blocks)


def error_of(content, now_ms=NOW, **rules):
    with pytest.raises(AppendError) as caught:
        check_batch(content, decode_header(content), LogRules(**rules), now_ms)
    return caught.value


def check_accepted(content, now_ms=NOW, **rules):
    check_batch(content, decode_header(content), LogRules(**rules), now_ms)


def test_field_is_split_into_batches():
    first, second = batch("a"), batch("b", "c")

    assert [first, second] == split_batches(first + second)


@given(st.integers(0, 67))
def test_incomplete_batch_is_left_out(length):
    whole = batch("a")

    assert [whole] == split_batches(whole + whole[:length])


@given(at=st.integers(21, 76), bit=st.integers(0, 7))
def test_crc_detects_changed_bits(at, bit):
    content = batch("a" * 9)
    changed = patched(content, at, content[at] ^ 1 << bit)

    assert has_valid_crc(content, decode_header(content))
    assert not has_valid_crc(changed, decode_header(changed))


def test_producer_cannot_set_log_append_time():
    head = BatchHead(finalize(batch(attributes=0x08), 0, 0))

    assert (0, True) == (head.attributes, head.is_sound)


@pytest.mark.parametrize(("committed", "kind"), [(True, 1), (False, 0)])
def test_marker_equals_kafkas(committed, kind):
    head = BatchHead(encode_marker(7, 3, committed, NOW))

    assert head.is_sound
    assert (0x30, 7, 3, -1, 1) == (
        head.attributes,
        head.producer_id,
        head.producer_epoch,
        head.base_sequence,
        head.record_count,
    )
    assert f"20000000080000000{kind}0c00000000000000" == head.body.hex()


@pytest.mark.parametrize(
    ("attributes", "compress"),
    [
        (0, bytes),
        (GZIP, gzip),
        (SNAPPY, bare_snappy),
        (SNAPPY, framed_snappy),
        (LZ4, cramjam.lz4.compress),
        (ZSTD, cramjam.zstd.compress),
    ],
)
def test_records_of_every_compression_are_decoded(attributes, compress):
    content = batch(
        *("some value " * 9 for _ in range(3)),
        keys=[b"k", None, b""],
        times=[NOW, NOW - 5, NOW + 70],
        attributes=attributes,
        compress=lambda body: bytes(compress(body)),
    )
    content = finalize(content, 40, 0)

    check_accepted(
        batch("a", attributes=attributes, compress=lambda b: bytes(compress(b)))
    )
    assert [(NOW, 40, True), (NOW - 5, 41, False), (NOW + 70, 42, True)] == list(
        decode_heads(content, decode_header(content))
    )


@pytest.mark.parametrize("attributes", [GZIP, SNAPPY, LZ4, ZSTD, 5, 7])
def test_wrong_compression_is_an_unknown_server_error(attributes):
    assert ErrorCode.unknown_server_error is error_of(batch(attributes=attributes)).code


@given(st.binary(max_size=60), st.integers(1, 5))
def test_garbage_raises_value_error(body, count):
    content = sealed(batch(*"x" * count)[:61] + body)
    length = (49 + len(body)).to_bytes(4, "big")
    content = patched(content, 8, *length)

    try:
        found = list(decode_heads(content, decode_header(content)))
    except ValueError:
        return
    assert count == len(found)


def test_records_out_of_timestamp_range_are_listed():
    hour = 3_600_000
    content = batch("a", "b", "c", times=[NOW, NOW + hour + 1, NOW - 11])

    assert {1} == error_of(content).record_errors.keys()
    assert {1, 2} == error_of(content, timestamp_before_max=10).record_errors.keys()
    assert ErrorCode.invalid_timestamp is error_of(content).code
    check_accepted(content, log_append_time=True)
    check_accepted(content, now_ms=NOW + 1)


def test_negative_range_of_offsets_is_an_invalid_record():
    error = error_of(batch(last_offset_delta=-1))

    assert ErrorCode.invalid_record is error.code
    assert "invalid offset range" in error.message
