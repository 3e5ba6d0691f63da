"""Damaged records are released once, and rejected at the next damaged delivery."""

from sharecons.protocol.acknowledge.damaged_records import MAX_RANGES, DamagedRecords
from tests.protocol.message_factories import P0, P1


def test_damaged_records_are_released_once_and_then_rejected():
    damaged = DamagedRecords()

    assert [(3, 9, False)] == damaged.treat(P0, 3, 9)
    assert [(3, 9, True)] == damaged.treat(P0, 3, 9)


def test_only_records_that_were_released_before_are_rejected():
    damaged = DamagedRecords()
    damaged.treat(P0, 3, 5)
    damaged.treat(P0, 8, 8)

    assert [
        (2, 2, False),
        (3, 5, True),
        (6, 7, False),
        (8, 8, True),
        (9, 9, False),
    ] == damaged.treat(P0, 2, 9)


def test_rejected_records_are_released_if_they_are_delivered_again():
    damaged = DamagedRecords()
    damaged.treat(P0, 3, 3)
    damaged.treat(P0, 3, 3)

    assert [(3, 3, False)] == damaged.treat(P0, 3, 3)


def test_partitions_are_independent():
    damaged = DamagedRecords()
    damaged.treat(P0, 3, 3)

    assert [(3, 3, False)] == damaged.treat(P1, 3, 3)


def test_released_records_are_not_among_the_others():
    damaged = DamagedRecords()
    damaged.treat(P0, 3, 5)

    assert [(2, 2), (6, 7)] == damaged.others(P0, 2, 7)
    assert [(2, 7)] == damaged.others(P1, 2, 7)


def test_number_of_ranges_is_limited():
    damaged = DamagedRecords()
    for offset in range(0, 4 * MAX_RANGES, 2):
        damaged.treat(P0, offset, offset)

    ranges = damaged.others(P0, 0, 4 * MAX_RANGES)

    assert len(ranges) <= MAX_RANGES + 1
