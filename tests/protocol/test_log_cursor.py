"""The cursor: progress in a partition, and bytes per request."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.protocol.log_reader.cursor import (
    MAX_BYTES,
    Cursor,
    spans_by_partition,
)
from sharecons.protocol.partitions import SharePartition

PARTITION = SharePartition(b"t" * 16, 3)


class Range(NamedTuple):
    share_partition: SharePartition
    first_offset: int
    last_offset: int
    delivery_count: int = 1


def cursor(*spans):
    return Cursor(PARTITION, [(first, last, 1) for first, last in spans], 1.0)


@st.composite
def spans(draw):
    bounds = sorted(draw(st.sets(st.integers(0, 200), min_size=2, max_size=12)))
    return list(zip(bounds[::2], bounds[1::2], strict=False))


def offsets(ranges):
    return [n for first, last, *_ in ranges for n in range(first, last + 1)]


def test_ranges_are_sorted_by_partition_and_offset():
    other = SharePartition(b"s" * 16, 9)
    ranges = [Range(PARTITION, 9, 9), Range(other, 0, 5, 2), Range(PARTITION, 3, 4)]

    assert {
        other: [(0, 5, 2)],
        PARTITION: [(3, 4, 1), (9, 9, 1)],
    } == spans_by_partition(ranges)


def test_offset_in_two_ranges_is_rejected():
    with pytest.raises(ValueError, match="offset 4 is in two"):
        spans_by_partition([Range(PARTITION, 4, 9), Range(PARTITION, 1, 4)])


@given(requested=spans(), steps=st.lists(st.integers(1, 40)))
@pytest.mark.slow("a search")
def test_all_requested_offsets_are_returned_once(requested, steps):
    reader = cursor(*requested)
    returned = []
    for step in [*steps, *([10] * 30)]:
        if reader.finished:
            break
        after = reader.offset + step
        returned += [n for n in offsets(reader.advance(after, 100)) if n < after]

    assert reader.finished
    assert offsets(requested) == returned


@given(requested=spans(), lost_before=st.integers(0, 250), step=st.integers(1, 50))
def test_skipped_offsets_are_not_returned_and_the_others_are(
    requested, lost_before, step
):
    reader = cursor(*requested)
    after = reader.offset + step
    returned = [n for n in offsets(reader.advance(after, 100)) if n < after]
    lost = []
    if not reader.finished and lost_before > reader.offset:
        first, last = reader.skip(lost_before)
        lost = [n for n in offsets(requested) if first <= n <= last]
        assert {first, last} <= set(lost)
    while not reader.finished:
        after = reader.offset + 7
        returned += [n for n in offsets(reader.advance(after, 100)) if n < after]

    assert offsets(requested) == sorted(returned + lost)
    assert all(n < lost_before for n in lost)


def test_all_remaining_offsets_can_be_skipped():
    reader = cursor((3, 5), (9, 12))
    reader.advance(5, 10)

    assert (5, 12) == reader.skip(None)
    assert reader.finished


def test_offsets_below_the_position_are_not_returned_again():
    reader = cursor((3, 12))
    reader.skip(7)

    assert [(7, 12, 1)] == reader.advance(10, 10)
    assert [(10, 12, 1)] == reader.advance(13, 10)


def test_large_range_requests_at_most_the_maximum():
    assert MAX_BYTES == cursor((0, 10_000_000)).max_bytes()


def test_bytes_are_estimated_from_earlier_responses():
    reader = cursor((0, 1999))
    reader.advance(1000, 1000 * 500)

    assert 500_000 <= reader.max_bytes() <= 600_000


def test_small_gap_is_read_and_large_gap_is_not():
    near, far = cursor((0, 999), (1050, 1999)), cursor((0, 999), (9000, 9999))
    for reader in (near, far):
        reader.advance(500, 500 * 1000)

    assert near.max_bytes() > 1_400_000
    assert far.max_bytes() < 600_000


def test_failures_are_counted_until_progress():
    reader = cursor((0, 99))

    first = reader.on_failure("down", 10.0)
    second = reader.on_failure("gone", 12.0)

    assert (10.0, 1, "down") == first
    assert (10.0, 2, "gone") == second
    assert reader.not_before > 12.0
    reader.advance(5, 100)
    assert reader.failures is None
    assert reader.not_before == 0.0
