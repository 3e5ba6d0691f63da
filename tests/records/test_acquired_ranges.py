"""Batches acquired as one range or offset by offset.

A reader takes shortcuts for a batch within one acquired range; the result is the same.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sharecons.records.batch_header import CRC_START
from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode
from tests.records.reading import decode_payload, offsets, record_fields, with_checksum

FIRST, COUNT = 7, 3


def batch(codec=Codec.NONE, *, control=False):
    return encode(
        [
            NewRecord(b"key", b"value %d" % i, (("a", b"b"),), i, i)
            for i in range(COUNT)
        ],
        base_offset=FIRST,
        base_timestamp=1_000,
        last_offset_delta=COUNT - 1,
        compression=codec,
        control=control,
    )


def outcome(decoded):
    """Return the records, and what became of each other offset."""
    return (
        record_fields(decoded.records),
        offsets(decoded.gaps),
        {
            offset: each[-1]
            for each in decoded.undecodable
            for offset in offsets([each])
        },
        offsets(decoded.unseen),
    )


def decode_both_ways(payload, first=FIRST, last=FIRST + COUNT - 1):
    """Check that one range and a range per offset have the same result; return it."""
    result = outcome(decode_payload(payload, [(first, last, 2)]))
    by_offset = [(offset, offset, 2) for offset in range(first, last + 1)]
    assert result == outcome(decode_payload(payload, by_offset))
    return result


@pytest.mark.parametrize("codec", Codec)
def test_batch_acquired_as_a_whole(codec):
    records, gaps, undecodable, unseen = decode_both_ways(batch(codec))

    assert [FIRST, FIRST + 1, FIRST + 2] == [record[0] for record in records]
    assert ([], {}, []) == (gaps, undecodable, unseen)


@pytest.mark.parametrize("first", range(FIRST - 2, FIRST + 3))
@pytest.mark.parametrize("last", range(FIRST + 2, FIRST + 5))
@pytest.mark.parametrize("control", [False, True])
def test_acquired_range_that_differs_from_the_batch(first, last, control):
    decode_both_ways(batch(control=control), first, last)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@example(at=16, bits=1, whole=True)  # another format
@example(at=26, bits=1, whole=True)  # its last offset
@example(at=60, bits=1, whole=True)  # fewer records than offsets
@example(at=60, bits=7, whole=True)  # more records than offsets
@given(
    at=st.integers(0, len(batch()) - 1), bits=st.integers(1, 255), whole=st.booleans()
)
def test_damage_anywhere(codec, at, bits, whole):
    damaged = bytearray(batch(codec))
    at %= len(damaged)
    damaged[at] ^= bits
    # In some cases the checksum is correct.
    decode_both_ways(
        with_checksum(damaged) if whole and at >= CRC_START else bytes(damaged)
    )


@given(size=st.integers(0, len(batch())), more=st.binary(max_size=80))
def test_truncated_payload_or_extra_bytes(size, more):
    decode_both_ways(batch()[:size])
    decode_both_ways(batch() + more)
