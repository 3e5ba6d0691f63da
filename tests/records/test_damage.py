"""Damaged bytes make only the offsets in them undecodable."""

import pytest

from sharecons.records.batch_header import HEADER_SIZE
from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode
from sharecons.records.errors import UNREADABLE, is_damage
from tests.records.reading import (
    EVERYTHING,
    all_offsets,
    decode_payload,
    offsets,
    reasons,
    record_fields,
    values,
    with_checksum,
)

FIRST = encode([NewRecord(b"k%d" % i, b"first %d" % i) for i in range(3)])
SECOND = encode(
    [NewRecord(None, b"second" * 5, (("h", None), ("i", b"j")), i) for i in range(3)],
    base_offset=5,
    compression=Codec.GZIP,
)
THIRD = encode([NewRecord(None, b"third"), NewRecord(None, b"4th")], base_offset=8)

LOG = FIRST + SECOND + THIRD
"""Three batches: offsets 0 to 2, a gap, 5 to 7, 8 and 9."""
ACQUIRED = [(0, 1, 1), (2, 5, 2), (7, 11, 3)]
ACQUIRED_OFFSETS = offsets(ACQUIRED)


def test_undamaged_log_is_decoded():
    decoded = decode_payload(LOG, ACQUIRED)

    assert [0, 1, 2, 5, 7, 8, 9] == [record.offset for record in decoded.records]
    assert [(3, 4)] == decoded.gaps
    assert [] == decoded.undecodable
    assert [(10, 11)] == decoded.unseen


@pytest.mark.parametrize("acquired", [ACQUIRED, EVERYTHING])
def test_truncated_payload_returns_its_complete_batches(acquired):
    all_records = record_fields(decode_payload(LOG, acquired).records)
    for size in range(len(LOG)):
        decoded = decode_payload(LOG[:size], acquired)

        ends = [(len(LOG), 10), (len(FIRST + SECOND), 8), (len(FIRST), 3), (0, 0)]
        settled = next(offset for position, offset in ends if size >= position)
        assert [one for one in all_records if one[0] < settled] == record_fields(
            decoded.records
        )
        assert [] == decoded.undecodable
        assert settled <= decoded.unseen[0][0]


def test_every_offset_of_a_truncated_payload_is_accounted_for():
    for size in range(len(LOG)):
        assert ACQUIRED_OFFSETS == all_offsets(decode_payload(LOG[:size], ACQUIRED))


def damage(batch):
    """Return the batch with its last byte changed."""
    return batch[:-1] + bytes([batch[-1] ^ 1])


def flip_each_bit(payload):
    for position in range(len(payload)):
        for bit in range(8):
            flipped = bytearray(payload)
            flipped[position] ^= 1 << bit
            yield position, bytes(flipped)


BASE_OFFSETS = {
    start + i for start in (0, len(FIRST), len(FIRST + SECOND)) for i in range(8)
}
"""Positions of the bytes that no checksum covers."""


@pytest.mark.parametrize("acquired", [ACQUIRED, [(5, 7, 1)], [(0, 4, 1), (8, 9, 1)]])
def test_flipped_bit_causes_no_wrong_record_or_gap(acquired):
    right = {
        record[0]: record
        for record in record_fields(decode_payload(LOG, acquired).records)
    }
    for position, flipped in flip_each_bit(LOG):
        decoded = decode_payload(flipped, acquired)

        assert offsets(acquired) == all_offsets(decoded)
        if position not in BASE_OFFSETS:
            for record in record_fields(decoded.records):
                assert right[record[0]] == record
            assert {3, 4}.issuperset(offsets(decoded.gaps))


def test_flipped_bit_in_a_base_offset_causes_no_wrong_value():
    right = values(LOG)
    for position, flipped in flip_each_bit(LOG):
        if position in BASE_OFFSETS:
            decoded = decode_payload(flipped, EVERYTHING)

            assert all(record.value in right for record in decoded.records)


def test_wrong_checksum_affects_only_its_batch():
    damaged = damage(FIRST)
    decoded = decode_payload(damaged + SECOND + THIRD, ACQUIRED)

    assert [5, 7, 8, 9] == [record.offset for record in decoded.records]
    # The offsets before the next batch are no gap: the damaged batch can contain them.
    assert [
        (0, 1, "the checksum does not match"),
        (2, 4, "the checksum does not match"),
    ] == [*decoded.undecodable]
    assert [] == decoded.gaps


def test_damage_at_the_end_covers_the_offsets_in_the_header():
    damaged = damage(THIRD)
    decoded = decode_payload(FIRST + SECOND + damaged, [(6, 20, 1)])

    assert [(8, 9, "the checksum does not match")] == decoded.undecodable
    assert [(10, 20)] == decoded.unseen


def test_damage_covers_the_offsets_in_all_damaged_headers():
    shorter = damage(encode([NewRecord()], base_offset=2))
    decoded = decode_payload(damage(encode([NewRecord()] * 5)) + shorter, [(0, 9, 1)])

    assert [(0, 1), (2, 4)] == [one[:2] for one in decoded.undecodable]
    assert [(5, 9)] == decoded.unseen


def test_damage_ends_at_the_next_correct_batch():
    wild = damage(encode([NewRecord()], base_offset=1 << 50))
    decoded = decode_payload(
        damage(FIRST) + wild + SECOND + damage(THIRD), [(0, 20, 1)]
    )

    assert [5, 6, 7] == [record.offset for record in decoded.records]
    assert [(0, 4), (8, 9)] == [one[:2] for one in decoded.undecodable]
    assert [(10, 20)] == decoded.unseen


def test_consecutive_damaged_batches_keep_their_reasons():
    checksum = damage(FIRST)
    magic = bytearray(SECOND)
    magic[16] = 9
    decoded = decode_payload(checksum + magic + THIRD)

    expected = [
        (0, 4, "the checksum does not match"),
        (5, 7, f"{UNREADABLE}unknown record batch format 9"),
    ]
    assert expected == decoded.undecodable
    assert [True, False] == [is_damage(each.reason) for each in decoded.undecodable]
    assert [8, 9] == [record.offset for record in decoded.records]


@pytest.mark.parametrize("base_offset", [-1, -(1 << 63)])
def test_batch_with_a_negative_base_offset(base_offset):
    decoded = decode_payload(
        encode([NewRecord()], base_offset=base_offset) + THIRD, [(0, 9, 1)]
    )

    assert [8, 9] == [record.offset for record in decoded.records]
    assert [(0, 7)] == [one[:2] for one in decoded.undecodable]


@pytest.mark.parametrize("length", [-(1 << 31), -12, -1, 0, 13])
def test_offsets_after_an_invalid_length_are_undecodable(length):
    lost = bytearray(SECOND)
    lost[8:12] = length.to_bytes(4, "big", signed=True)
    decoded = decode_payload(FIRST + lost + THIRD, ACQUIRED)

    assert [0, 1, 2] == [record.offset for record in decoded.records]
    assert [(3, 5), (7, 11)] == [one[:2] for one in decoded.undecodable]
    assert {f"invalid batch length {length}"} == set(reasons(decoded))


def test_invalid_length_after_a_damaged_batch_keeps_its_reason():
    damaged = damage(FIRST)
    lost = bytearray(SECOND)
    lost[8:12] = bytes(4)
    decoded = decode_payload(damaged + lost, [(0, 9, 1)])

    expected = [
        (0, 2, "the checksum does not match"),
        (3, 9, "invalid batch length 0"),
    ]
    assert expected == decoded.undecodable


@pytest.mark.parametrize("size", [26, HEADER_SIZE - 1])
def test_batch_shorter_than_its_header(size):
    decoded = decode_payload(with_checksum(FIRST[:size]) + THIRD, [(0, 9, 1)])

    assert [(0, 7, "the batch is shorter than its header")] == decoded.undecodable
    assert [8, 9] == [record.offset for record in decoded.records]


def test_length_beyond_the_payload_is_a_truncated_batch():
    long = bytearray(SECOND)
    long[8:12] = ((1 << 31) - 1).to_bytes(4, "big")
    decoded = decode_payload(FIRST + long + THIRD, ACQUIRED)

    assert [0, 1, 2] == [record.offset for record in decoded.records]
    assert [(3, 5), (7, 11)] == decoded.unseen


def test_repeated_batch_is_decoded_once():
    decoded = decode_payload(FIRST + FIRST + SECOND + THIRD, ACQUIRED)

    assert record_fields(decode_payload(LOG, ACQUIRED).records) == record_fields(
        decoded.records
    )


def test_unordered_batches_have_no_gaps():
    decoded = decode_payload(THIRD + SECOND + FIRST, ACQUIRED)

    assert [8, 9] == [record.offset for record in decoded.records]
    assert [] == decoded.gaps
    assert [(0, 1), (2, 5), (7, 7)] == [one[:2] for one in decoded.undecodable]
    assert ACQUIRED_OFFSETS == all_offsets(decoded)


def test_undecodable_ranges_are_ascending_for_unordered_batches():
    decoded = decode_payload(SECOND + damage(THIRD) + FIRST, [(4, 9, 1)])

    expected = [
        (4, 4, "a gap between batches that are not in order"),
        (8, 9, "the checksum does not match"),
    ]
    assert expected == decoded.undecodable


def test_overlapping_batch_is_undecodable():
    overlapping = encode([NewRecord()] * 4, base_offset=2)
    decoded = decode_payload(FIRST + overlapping + THIRD, [(0, 9, 1)])

    assert [0, 1, 2, 8, 9] == [record.offset for record in decoded.records]
    assert [(3, 7, "the batch overlaps a previous one")] == decoded.undecodable


def shortened(batch):
    """Return the batch with a last offset delta of 0, without a new checksum."""
    batch = bytearray(batch)
    batch[23:27] = bytes(4)
    return batch


def test_damaged_header_of_a_skipped_batch_causes_no_gap():
    # By its header, the batch ends before its acquired offsets.
    decoded = decode_payload(shortened(FIRST) + SECOND, [(2, 7, 1)])

    assert [5, 6, 7] == [record.offset for record in decoded.records]
    assert [(2, 4, "the checksum does not match")] == decoded.undecodable


def test_damaged_header_of_a_skipped_batch_does_not_affect_the_next_batch():
    # By its header, the batch overlaps the next one.
    damaged = bytearray(FIRST)
    damaged[26] ^= 4
    decoded = decode_payload(damaged + SECOND + THIRD, [(7, 9, 1)])

    assert [7, 8, 9] == [record.offset for record in decoded.records]
    assert [7, 8, 9] == all_offsets(decoded)


def test_missing_offsets_before_a_damaged_skipped_batch_are_not_a_gap():
    damaged = damage(SECOND)
    decoded = decode_payload(FIRST + damaged + THIRD, [(3, 4, 1), (8, 9, 1)])

    assert [8, 9] == [record.offset for record in decoded.records]
    assert [(3, 4, "the checksum does not match")] == decoded.undecodable


def test_correct_batch_that_is_not_acquired_ends_the_damage():
    damaged = damage(FIRST)
    decoded = decode_payload(damaged + SECOND + THIRD, [(0, 4, 1), (8, 9, 1)])

    assert [(0, 4, "the checksum does not match")] == decoded.undecodable
    assert [8, 9] == [record.offset for record in decoded.records]


def test_invalid_bytes_between_batches_do_not_affect_later_ones():
    wild = damage(encode([NewRecord()], base_offset=1 << 50))
    decoded = decode_payload(FIRST + wild + SECOND + THIRD, ACQUIRED)

    assert [0, 1, 2, 5, 7, 8, 9] == [record.offset for record in decoded.records]
    assert [(3, 4, "the checksum does not match")] == decoded.undecodable
