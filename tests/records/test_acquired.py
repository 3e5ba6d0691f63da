"""Only what was acquired is handed out, and every acquired offset is accounted for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode
from tests.records.reading import accounted, offsets, read, sealed, told


def batch(first, *deltas, last_delta=None, codec=Codec.NONE, control=False):
    """Make a batch of records that say in their values at which offset they are."""
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
        for record in read(payload, acquired).records
    }


def test_every_record_of_a_batch():
    assert list(range(10)) == [record.offset for record in read(TEN).records]


def test_a_range_within_a_batch():
    decoded = read(TEN, [(3, 5, 1)])

    assert [b"3", b"4", b"5"] == [record.value for record in decoded.records]
    assert [3, 4, 5] == accounted(decoded)


def test_each_range_has_its_own_delivery_count():
    acquired = [(0, 1, 1), (2, 2, 5), (3, 3, 2), (6, 7, 3), (9, 9, 1)]

    expected = {0: 1, 1: 1, 2: 5, 3: 2, 6: 3, 7: 3, 9: 1}
    assert expected == counts(TEN, acquired)


def test_ranges_that_begin_and_end_within_batches():
    acquired = [(3, 6, 1), (8, 11, 2)]

    expected = {3: 1, 4: 1, 5: 1, 6: 1, 8: 2, 9: 2, 10: 2, 11: 2}
    assert expected == counts(THREE_BATCHES, acquired)


def test_ranges_that_begin_and_end_with_batches():
    acquired = [(0, 4, 1), (10, 14, 2)]

    expected = dict.fromkeys(range(5), 1) | dict.fromkeys(range(10, 15), 2)
    assert expected == counts(THREE_BATCHES, acquired)


def test_one_range_over_many_small_batches():
    payload = b"".join(batch(i, 0) for i in range(300))
    decoded = read(payload, [(0, 299, 1)])

    assert [b"%d" % i for i in range(300)] == [r.value for r in decoded.records]


@pytest.mark.parametrize("acquired", [(2, 3, 1), (2, 4, 1), (0, 5, 1)])
def test_a_batch_is_read_no_further_than_what_was_acquired(acquired):
    payload = bytearray(batch(0, 0, 2, 5, 6, last_delta=9))
    payload[-8] ^= 1  # makes the last record's length negative
    decoded = read(sealed(payload), [acquired])

    assert [] == decoded.undecodable
    assert offsets([acquired]) == accounted(decoded)


def test_nothing_acquired():
    decoded = read(THREE_BATCHES, [])

    assert [] == accounted(decoded)


def test_a_payload_before_all_that_is_acquired():
    decoded = read(TEN, [(50, 60, 1)])

    assert [(50, 60)] == decoded.unseen


def test_nothing_of_an_empty_payload_was_seen():
    decoded = read(b"", [(0, 4, 1), (9, 9, 2)])

    assert [(0, 4), (9, 9)] == decoded.unseen


def test_offsets_after_the_last_batch_were_not_seen():
    decoded = read(TEN, [(8, 12, 1), (20, 21, 1)])

    assert [(10, 12), (20, 21)] == decoded.unseen
    assert [8, 9, 10, 11, 12, 20, 21] == accounted(decoded)


def test_a_batch_cut_off_was_not_seen():
    decoded = read(THREE_BATCHES[:-1], [(0, 14, 1)])

    assert list(range(10)) == [record.offset for record in decoded.records]
    assert [(10, 14)] == decoded.unseen


def test_holes_within_a_batch_are_gaps():
    decoded = read(batch(0, 1, 2, 5, last_delta=8), [(0, 8, 1)])

    assert [(0, 0), (3, 4), (6, 8)] == decoded.gaps
    assert list(range(9)) == accounted(decoded)


def test_holes_within_a_batch_are_clipped_to_the_ranges():
    decoded = read(batch(0, 1, 2, 7, last_delta=9), [(3, 4, 1), (6, 8, 2)])

    assert [(3, 4), (6, 6), (8, 8)] == decoded.gaps
    assert [(7, 7, None, b"7", (), 2)] == told(decoded.records)


def test_a_hole_over_several_ranges():
    decoded = read(batch(0, 0, 9), [(0, 1, 1), (3, 4, 2), (6, 6, 3), (8, 9, 4)])

    assert [1, 3, 4, 6, 8] == offsets(decoded.gaps)
    assert [0, 9] == [record.offset for record in decoded.records]
    assert [1, 4] == [record.delivery_count for record in decoded.records]


def test_holes_between_batches_are_gaps():
    payload = batch(2, 0, 1) + batch(6, 0, 1)
    decoded = read(payload, [(0, 7, 1)])

    assert [(0, 1), (4, 5)] == decoded.gaps
    assert list(range(8)) == accounted(decoded)


def test_a_control_batch_is_a_gap_between_its_neighbours():
    payload = batch(0, 0) + batch(1, 0, control=True) + batch(2, 0)
    decoded = read(payload, [(0, 2, 1)])

    assert [(1, 1)] == decoded.gaps
    assert [0, 2] == [record.offset for record in decoded.records]


def test_a_control_batch_of_nobody_s_is_nothing():
    decoded = read(batch(0, 0, control=True) + batch(1, 0), [(1, 1, 1)])

    assert [1] == [record.offset for record in decoded.records]
    assert [1] == accounted(decoded)


def test_batches_that_nobody_acquired_are_not_looked_into():
    damaged = bytearray(batch(5, 0, 1))
    damaged[-1] ^= 1
    payload = batch(0, *range(5)) + damaged + batch(7, 0)
    decoded = read(payload, [(0, 4, 1), (7, 7, 1)])

    assert [0, 1, 2, 3, 4, 7] == [record.offset for record in decoded.records]
    assert [] == decoded.undecodable


def test_batches_that_nobody_acquired_do_not_matter_to_holes_far_from_them():
    damaged = bytearray(batch(0, 0, 1))
    damaged[-1] ^= 1
    decoded = read(damaged + batch(2, 0) + batch(4, 0), [(2, 4, 1)])

    assert [2, 4] == [record.offset for record in decoded.records]
    assert [(3, 3)] == decoded.gaps


def test_a_hole_beside_a_batch_that_nobody_acquired_is_a_gap():
    payload = batch(0, 0) + batch(3, 0, 1) + batch(7, 0, 1) + batch(11, 0)
    decoded = read(payload, [(1, 1, 1), (6, 6, 1), (10, 10, 1)])

    assert [(1, 1), (6, 6), (10, 10)] == decoded.gaps


def test_bytes_from_before_the_first_offset_that_was_acquired():
    decoded = read(THREE_BATCHES, [(12, 14, 3)])

    assert {12: 3, 13: 3, 14: 3} == {
        r.offset: r.delivery_count for r in decoded.records
    }
    assert [12, 13, 14] == accounted(decoded)


@pytest.mark.parametrize("base_offset", [1 << 31, 1 << 32, (1 << 63) - 10])
def test_big_offsets(base_offset):
    payload = batch(base_offset, *range(10))
    acquired = [
        (base_offset, base_offset + 4, 1),
        (base_offset + 6, base_offset + 9, 2),
    ]

    expected = [base_offset + i for i in (0, 1, 2, 3, 4, 6, 7, 8, 9)]
    assert expected == list(counts(payload, acquired))


# A log, as (offsets of its records, its last offset, codec, control) of each batch, and
# what lies between the batches.
BATCHES = st.tuples(
    st.sets(st.integers(0, 12), max_size=8),
    st.integers(0, 3),
    st.sampled_from(Codec),
    st.sampled_from([False, False, False, True]),
    st.integers(0, 3),
)


@st.composite
def logs(draw):
    """Draw a log of whole batches: its bytes, its offsets with a record, its end."""
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
    """Draw acquired ranges: ascending, none overlapping another."""
    cuts = sorted(draw(st.sets(st.integers(0, most), max_size=12)))
    acquired, start = [], 0
    for cut in cuts:
        if draw(st.booleans()):
            acquired.append((start, cut, draw(st.integers(1, 5))))
        start = cut + 1
    return acquired


@given(logs(), spans())
def test_every_acquired_offset_is_in_the_part_where_it_belongs(log, acquired):
    pieces, written, end = log
    decoded = read(b"".join(pieces), acquired)

    wanted = offsets(acquired)
    assert wanted == accounted(decoded)
    assert [i for i in wanted if i in written] == [r.offset for r in decoded.records]
    assert [i for i in wanted if i < end and i not in written] == offsets(decoded.gaps)
    assert [] == decoded.undecodable
    assert [i for i in wanted if i >= end] == offsets(decoded.unseen)


@given(logs(), spans())
def test_every_record_is_the_one_at_its_offset_and_of_its_range(log, acquired):
    delivery_counts = {i: span[2] for span in acquired for i in offsets([span])}
    for record in read(b"".join(log[0]), acquired).records:
        assert b"%d" % record.offset == record.value
        assert delivery_counts[record.offset] == record.delivery_count


@st.composite
def harmed(draw):
    """Draw bytes that were a log once."""
    pieces, _, _ = draw(logs())
    pieces = draw(st.permutations(pieces)) if draw(st.booleans()) else pieces
    pieces = draw(st.lists(st.sampled_from(pieces))) if pieces else pieces
    payload = bytearray(b"".join(pieces))
    for _ in range(draw(st.integers(0, 3)) if payload else 0):
        start = draw(st.integers(0, len(payload)))
        stop = start + draw(st.integers(0, 20))
        payload[start:stop] = draw(st.binary(max_size=20))
    return bytes(payload)


@given(harmed() | st.binary(max_size=300), spans())
def test_every_acquired_offset_is_in_exactly_one_part_whatever_the_bytes(
    payload, acquired
):
    decoded = read(payload, acquired)

    assert offsets(acquired) == accounted(decoded)
    for ranges in (decoded.gaps, decoded.undecodable, decoded.unseen):
        assert sorted(ranges) == ranges
    found = [record.offset for record in decoded.records]
    assert sorted(set(found)) == found
