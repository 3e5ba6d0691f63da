"""Only acquired records are decoded, and every acquired offset is accounted for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode
from tests.records.reading import (
    all_offsets,
    decode_payload,
    offsets,
    record_fields,
    with_checksum,
)


def batch(first, *deltas, last_delta=None, codec=Codec.NONE, control=False):
    """Return a batch of records whose values are their offsets."""
    return encode(
        [
            NewRecord(None, b"%d" % (first + delta), (), delta, delta)
            for delta in deltas
        ],
        base_offset=first,
        base_timestamp=0,
        last_offset_delta=last_delta,
        compression=codec,
        control=control,
    )


TEN = batch(0, *range(10))
THREE_BATCHES = (
    batch(0, *range(5)) + batch(5, *range(5), codec=Codec.ZSTD) + batch(10, *range(5))
)


def counts(payload, acquired):
    return {
        record.offset: record.delivery_count
        for record in decode_payload(payload, acquired).records
    }


def test_one_range_over_many_small_batches():
    payload = b"".join(batch(i, 0) for i in range(300))
    decoded = decode_payload(payload, [(0, 299, 1)])

    assert [b"%d" % i for i in range(300)] == [r.value for r in decoded.records]


@pytest.mark.parametrize("acquired", [(2, 3, 1), (2, 4, 1), (0, 5, 1)])
def test_decoding_stops_after_the_last_acquired_record(acquired):
    payload = bytearray(batch(0, 0, 2, 5, 6, last_delta=9))
    payload[-8] ^= 1  # makes the last record's length negative
    decoded = decode_payload(with_checksum(payload), [acquired])

    assert [] == decoded.undecodable
    assert offsets([acquired]) == all_offsets(decoded)


def test_offsets_of_a_truncated_batch_are_unseen():
    decoded = decode_payload(THREE_BATCHES[:-1], [(0, 14, 1)])

    assert list(range(10)) == [record.offset for record in decoded.records]
    assert [(10, 14)] == decoded.unseen


def test_gaps_in_a_batch_are_limited_to_the_acquired_ranges():
    decoded = decode_payload(batch(0, 1, 2, 7, last_delta=9), [(3, 4, 1), (6, 8, 2)])

    assert [(3, 4), (6, 6), (8, 8)] == decoded.gaps
    assert [(7, 7, None, b"7", (), 2)] == record_fields(decoded.records)


def test_batches_that_are_not_acquired_are_not_decoded():
    damaged = bytearray(batch(5, 0, 1))
    damaged[-1] ^= 1
    payload = batch(0, *range(5)) + damaged + batch(7, 0)
    decoded = decode_payload(payload, [(0, 4, 1), (7, 7, 1)])

    assert [0, 1, 2, 3, 4, 7] == [record.offset for record in decoded.records]
    assert [] == decoded.undecodable


def test_damaged_batch_that_is_not_acquired_does_not_affect_distant_gaps():
    damaged = bytearray(batch(0, 0, 1))
    damaged[-1] ^= 1
    decoded = decode_payload(damaged + batch(2, 0) + batch(4, 0), [(2, 4, 1)])

    assert [2, 4] == [record.offset for record in decoded.records]
    assert [(3, 3)] == decoded.gaps


@pytest.mark.parametrize("base_offset", [1 << 31, 1 << 32, (1 << 63) - 10])
def test_big_offsets(base_offset):
    payload = batch(base_offset, *range(10))
    acquired = [
        (base_offset, base_offset + 4, 1),
        (base_offset + 6, base_offset + 9, 2),
    ]

    expected = [base_offset + i for i in (0, 1, 2, 3, 4, 6, 7, 8, 9)]
    assert expected == list(counts(payload, acquired))


# A log: for each batch the offsets of its records, its last offset, codec and control,
# and the gaps between the batches.
BATCHES = st.tuples(
    st.sets(st.integers(0, 12), max_size=8),
    st.integers(0, 3),
    st.sampled_from(Codec),
    st.sampled_from([False, False, False, True]),
    st.integers(0, 3),
)


@st.composite
def logs(draw):
    """Draw a log of complete batches: its bytes, the offsets of records, its end."""
    pieces, written, end = [], set(), draw(st.integers(0, 5))
    for chosen, more, codec, control, hole in draw(st.lists(BATCHES, max_size=5)):
        deltas = sorted(chosen)
        last_delta = (deltas or [0])[-1] + more
        pieces.append(
            batch(end, *deltas, last_delta=last_delta, codec=codec, control=control)
        )
        written |= set() if control else {end + delta for delta in deltas}
        settled = end + last_delta + 1
        end = settled + hole
    return pieces, written, settled if pieces else 0


@st.composite
def spans(draw, most=80):
    """Draw acquired ranges, ascending and disjoint."""
    cuts = sorted(draw(st.sets(st.integers(0, most), max_size=12)))
    acquired, start = [], 0
    for cut in cuts:
        if draw(st.booleans()):
            acquired.append((start, cut, draw(st.integers(1, 5))))
        start = cut + 1
    return acquired


@given(logs(), spans())
def test_every_acquired_offset_is_in_the_right_part(log, acquired):
    pieces, written, end = log
    decoded = decode_payload(b"".join(pieces), acquired)

    expected = offsets(acquired)
    assert expected == all_offsets(decoded)
    assert [i for i in expected if i in written] == [r.offset for r in decoded.records]
    assert [i for i in expected if i < end and i not in written] == offsets(
        decoded.gaps
    )
    assert [] == decoded.undecodable
    assert [i for i in expected if i >= end] == offsets(decoded.unseen)


@given(logs(), spans())
def test_every_record_has_the_value_of_its_offset_and_range(log, acquired):
    delivery_counts = {i: span[2] for span in acquired for i in offsets([span])}
    for record in decode_payload(b"".join(log[0]), acquired).records:
        assert b"%d" % record.offset == record.value
        assert delivery_counts[record.offset] == record.delivery_count


@st.composite
def damaged_logs(draw):
    """Draw the bytes of a log, damaged."""
    pieces, _, _ = draw(logs())
    pieces = draw(st.permutations(pieces)) if draw(st.booleans()) else pieces
    pieces = draw(st.lists(st.sampled_from(pieces))) if pieces else pieces
    payload = bytearray(b"".join(pieces))
    for _ in range(draw(st.integers(0, 3)) if payload else 0):
        start = draw(st.integers(0, len(payload)))
        stop = start + draw(st.integers(0, 20))
        payload[start:stop] = draw(st.binary(max_size=20))
    return bytes(payload)


@given(damaged_logs() | st.binary(max_size=300), spans())
def test_every_acquired_offset_is_in_exactly_one_part_for_any_bytes(payload, acquired):
    decoded = decode_payload(payload, acquired)

    assert offsets(acquired) == all_offsets(decoded)
    for ranges in (decoded.gaps, decoded.undecodable, decoded.unseen):
        assert sorted(ranges) == ranges
    found = [record.offset for record in decoded.records]
    assert sorted(set(found)) == found
