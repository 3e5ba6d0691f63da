"""Bytes that are not what they should be cost no more than what they hold."""

import pytest

from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode
from sharecons.records.layout import HEADER_SIZE
from tests.records.reading import (
    EVERYTHING,
    accounted,
    offsets,
    read,
    reasons,
    sealed,
    told,
    values,
)

FIRST = encode([NewRecord(b"k%d" % i, b"first %d" % i) for i in range(3)])
SECOND = encode(
    [NewRecord(None, b"second" * 5, (("h", None), ("i", b"j")), i) for i in range(3)],
    base_offset=5,
    compression=Codec.GZIP,
)
THIRD = encode([NewRecord(None, b"third"), NewRecord(None, b"4th")], base_offset=8)

LOG = FIRST + SECOND + THIRD
"""Three batches: offsets 0 to 2, a hole, 5 to 7, 8 and 9."""
ACQUIRED = [(0, 1, 1), (2, 5, 2), (7, 11, 3)]
WANTED = offsets(ACQUIRED)


def test_the_log_is_read_while_it_is_whole():
    decoded = read(LOG, ACQUIRED)

    assert [0, 1, 2, 5, 7, 8, 9] == [record.offset for record in decoded.records]
    assert [(3, 4)] == decoded.gaps
    assert [] == decoded.undecodable
    assert [(10, 11)] == decoded.unseen


@pytest.mark.parametrize("acquired", [ACQUIRED, EVERYTHING])
def test_a_payload_cut_off_anywhere_gives_its_whole_batches(acquired):
    all_told = told(read(LOG, acquired).records)
    for size in range(len(LOG)):
        decoded = read(LOG[:size], acquired)

        ends = [(len(LOG), 10), (len(FIRST + SECOND), 8), (len(FIRST), 3), (0, 0)]
        settled = next(offset for position, offset in ends if size >= position)
        assert [one for one in all_told if one[0] < settled] == told(decoded.records)
        assert [] == decoded.undecodable
        assert settled <= decoded.unseen[0][0]


def test_every_offset_is_accounted_for_in_a_payload_cut_off_anywhere():
    for size in range(len(LOG)):
        assert WANTED == accounted(read(LOG[:size], ACQUIRED))


def broken(batch):
    """Give the batch with its last byte changed."""
    return batch[:-1] + bytes([batch[-1] ^ 1])


def flips(payload):
    for position in range(len(payload)):
        for bit in range(8):
            flipped = bytearray(payload)
            flipped[position] ^= 1 << bit
            yield position, bytes(flipped)


BASE_OFFSETS = {
    start + i for start in (0, len(FIRST), len(FIRST + SECOND)) for i in range(8)
}
"""Positions of what no checksum protects."""


@pytest.mark.parametrize("acquired", [ACQUIRED, [(5, 7, 1)], [(0, 4, 1), (8, 9, 1)]])
def test_no_flipped_bit_gives_a_wrong_record_or_a_wrong_gap(acquired):
    right = {record[0]: record for record in told(read(LOG, acquired).records)}
    for position, flipped in flips(LOG):
        decoded = read(flipped, acquired)

        assert offsets(acquired) == accounted(decoded)
        if position not in BASE_OFFSETS:
            for record in told(decoded.records):
                assert right[record[0]] == record
            assert {3, 4}.issuperset(offsets(decoded.gaps))


def test_a_flipped_bit_of_a_base_offset_gives_no_invented_value():
    right = values(LOG)
    for position, flipped in flips(LOG):
        if position in BASE_OFFSETS:
            decoded = read(flipped, EVERYTHING)

            assert all(record.value in right for record in decoded.records)


def test_a_wrong_checksum_costs_its_batch_and_no_other():
    damaged = broken(FIRST)
    decoded = read(damaged + SECOND + THIRD, ACQUIRED)

    assert [5, 7, 8, 9] == [record.offset for record in decoded.records]
    # The hole before the next batch is no gap: it may be the damaged one's.
    assert [
        (0, 1, "the checksum does not match"),
        (2, 4, "the checksum does not match"),
    ] == [*decoded.undecodable]
    assert [] == decoded.gaps


def test_damage_at_the_end_reaches_as_far_as_its_batch_says():
    damaged = broken(THIRD)
    decoded = read(FIRST + SECOND + damaged, [(6, 20, 1)])

    assert [(8, 9, "the checksum does not match")] == decoded.undecodable
    assert [(10, 20)] == decoded.unseen


def test_damage_reaches_as_far_as_any_damaged_batch_says():
    shorter = broken(encode([NewRecord()], base_offset=2))
    decoded = read(broken(encode([NewRecord()] * 5)) + shorter, [(0, 9, 1)])

    assert [(0, 1), (2, 4)] == [one[:2] for one in decoded.undecodable]
    assert [(5, 9)] == decoded.unseen


def test_damage_reaches_no_further_than_the_next_good_batch():
    wild = broken(encode([NewRecord()], base_offset=1 << 50))
    decoded = read(broken(FIRST) + wild + SECOND + broken(THIRD), [(0, 20, 1)])

    assert [5, 6, 7] == [record.offset for record in decoded.records]
    assert [(0, 4), (8, 9)] == [one[:2] for one in decoded.undecodable]
    assert [(10, 20)] == decoded.unseen


def test_batches_damaged_one_after_another_keep_their_own_reasons():
    checksum = broken(FIRST)
    magic = bytearray(SECOND)
    magic[16] = 9
    decoded = read(checksum + magic + THIRD)

    expected = [
        (0, 4, "the checksum does not match"),
        (5, 7, "unknown record batch format 9"),
    ]
    assert expected == decoded.undecodable
    assert [8, 9] == [record.offset for record in decoded.records]


@pytest.mark.parametrize("base_offset", [-1, -(1 << 63)])
def test_a_batch_before_all_offsets(base_offset):
    decoded = read(encode([NewRecord()], base_offset=base_offset) + THIRD, [(0, 9, 1)])

    assert [8, 9] == [record.offset for record in decoded.records]
    assert [(0, 7)] == [one[:2] for one in decoded.undecodable]


@pytest.mark.parametrize("length", [-(1 << 31), -12, -1, 0, 13])
def test_behind_a_length_that_is_none_nothing_is_found(length):
    lost = bytearray(SECOND)
    lost[8:12] = length.to_bytes(4, "big", signed=True)
    decoded = read(FIRST + lost + THIRD, ACQUIRED)

    assert [0, 1, 2] == [record.offset for record in decoded.records]
    assert [(3, 5), (7, 11)] == [one[:2] for one in decoded.undecodable]
    assert {f"invalid batch length {length}"} == set(reasons(decoded))


def test_a_lost_batch_behind_a_damaged_one_keeps_its_own_reason():
    damaged = broken(FIRST)
    lost = bytearray(SECOND)
    lost[8:12] = bytes(4)
    decoded = read(damaged + lost, [(0, 9, 1)])

    expected = [
        (0, 2, "the checksum does not match"),
        (3, 9, "invalid batch length 0"),
    ]
    assert expected == decoded.undecodable


@pytest.mark.parametrize("size", [26, HEADER_SIZE - 1])
def test_a_batch_too_short_for_its_header(size):
    decoded = read(sealed(FIRST[:size]) + THIRD, [(0, 9, 1)])

    assert [(0, 7, "the batch is shorter than its header")] == decoded.undecodable
    assert [8, 9] == [record.offset for record in decoded.records]


def test_a_length_beyond_the_payload_is_a_batch_cut_off():
    long = bytearray(SECOND)
    long[8:12] = ((1 << 31) - 1).to_bytes(4, "big")
    decoded = read(FIRST + long + THIRD, ACQUIRED)

    assert [0, 1, 2] == [record.offset for record in decoded.records]
    assert [(3, 5), (7, 11)] == decoded.unseen


def test_a_batch_that_comes_twice_is_handed_out_once():
    decoded = read(FIRST + FIRST + SECOND + THIRD, ACQUIRED)

    assert told(read(LOG, ACQUIRED).records) == told(decoded.records)


def test_no_hole_is_a_gap_where_batches_are_not_in_order():
    decoded = read(THIRD + SECOND + FIRST, ACQUIRED)

    assert [8, 9] == [record.offset for record in decoded.records]
    assert [] == decoded.gaps
    assert [(0, 1), (2, 5), (7, 7)] == [one[:2] for one in decoded.undecodable]
    assert WANTED == accounted(decoded)


def test_what_is_undecodable_ascends_though_the_batches_do_not():
    decoded = read(SECOND + broken(THIRD) + FIRST, [(4, 9, 1)])

    expected = [
        (4, 4, "a gap between batches that are not in order"),
        (8, 9, "the checksum does not match"),
    ]
    assert expected == decoded.undecodable


def test_a_batch_that_overlaps_the_one_before_is_undecodable():
    overlapping = encode([NewRecord()] * 4, base_offset=2)
    decoded = read(FIRST + overlapping + THIRD, [(0, 9, 1)])

    assert [0, 1, 2, 8, 9] == [record.offset for record in decoded.records]
    assert [(3, 7, "the batch overlaps a previous one")] == decoded.undecodable


def shortened(batch):
    """Let the batch say that it holds one offset only; its checksum is of old."""
    batch = bytearray(batch)
    batch[23:27] = bytes(4)
    return batch


def test_a_damaged_header_that_nobody_looked_at_makes_no_gap():
    # The header says that the batch ends before what was acquired of it.
    decoded = read(shortened(FIRST) + SECOND, [(2, 7, 1)])

    assert [5, 6, 7] == [record.offset for record in decoded.records]
    assert [(2, 4, "the checksum does not match")] == decoded.undecodable


def test_a_damaged_header_that_nobody_looked_at_costs_no_batch_behind_it():
    # The header says that the batch reaches into the next one.
    damaged = bytearray(FIRST)
    damaged[26] ^= 4
    decoded = read(damaged + SECOND + THIRD, [(7, 9, 1)])

    assert [7, 8, 9] == [record.offset for record in decoded.records]
    assert [7, 8, 9] == accounted(decoded)


def test_a_hole_before_a_damaged_batch_of_nobody_s_is_no_gap():
    damaged = broken(SECOND)
    decoded = read(FIRST + damaged + THIRD, [(3, 4, 1), (8, 9, 1)])

    assert [8, 9] == [record.offset for record in decoded.records]
    assert [(3, 4, "the checksum does not match")] == decoded.undecodable


def test_a_good_batch_of_nobody_s_ends_the_damage_before_it():
    damaged = broken(FIRST)
    decoded = read(damaged + SECOND + THIRD, [(0, 4, 1), (8, 9, 1)])

    assert [(0, 4, "the checksum does not match")] == decoded.undecodable
    assert [8, 9] == [record.offset for record in decoded.records]


def test_nonsense_between_batches_costs_nothing_behind_it():
    wild = broken(encode([NewRecord()], base_offset=1 << 50))
    decoded = read(FIRST + wild + SECOND + THIRD, ACQUIRED)

    assert [0, 1, 2, 5, 7, 8, 9] == [record.offset for record in decoded.records]
    assert [(3, 4, "the checksum does not match")] == decoded.undecodable
