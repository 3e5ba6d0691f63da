"""Positions of records in log lines."""

import pytest

from sharecons.protocol.acknowledge.positions import (
    OffsetRange,
    count_offsets,
    ranges_text,
)


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ([], ""),
        ([(7, 7)], "orders-2@7"),
        ([(7, 9)], "orders-2@7-9"),
        ([(7, 7), (8, 9), (10, 10)], "orders-2@7-10"),
        ([(7, 7), (9, 9)], "orders-2@7, orders-2@9"),
        ([(9, 9), (1, 1), (7, 8)], "orders-2@1, orders-2@7-9"),
    ],
)
def test_adjacent_ranges_are_joined(
    offsets: list[tuple[int, int]], expected: str
) -> None:
    ranges = [OffsetRange("orders", 2, first, last) for first, last in offsets]

    assert expected == ranges_text(ranges)
    assert sum(last - first + 1 for first, last in offsets) == count_offsets(ranges)


def test_adjacent_ranges_of_two_partitions_are_not_joined() -> None:
    ranges = [OffsetRange("orders", 1, 5, 6), OffsetRange("orders", 0, 0, 4)]

    assert "orders-0@0-4, orders-1@5-6" == ranges_text(ranges)


def test_ranges_above_the_limit_are_left_out() -> None:
    ranges = [OffsetRange("orders", 0, 2 * n, 2 * n) for n in range(11)]

    assert ranges_text(ranges).endswith("orders-0@16, orders-0@18, ...")
    assert "..." not in ranges_text(ranges[:10])
