"""The status of each offset, derived from stored states."""

from hypothesis import given
from hypothesis import strategies as st

from sharecons.group_state.group_states import PartitionState
from sharecons.group_state.offset_states import (
    OffsetStatus,
    offset_ranges_of,
)
from sharecons.protocol.admin.models import (
    DeliveryState,
    SharePartitionState,
    StateBatch,
)

AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = DeliveryState


def state(start, *batches):
    return SharePartitionState(
        start_offset=start,
        state_epoch=0,
        batches=tuple(
            StateBatch(first_offset=a, last_offset=b, state=s, delivery_count=c)
            for a, b, s, c in batches
        ),
    )


def named(*arguments):
    return [
        (each.first_offset, each.last_offset, each.status, each.delivery_count)
        for each in offset_ranges_of(*arguments)
    ]


def test_each_offset_from_start_to_end_has_a_status():
    stored = state(10, (10, 11, AVAILABLE, 2), (14, 15, ACKNOWLEDGED, 1))

    assert [
        (10, 11, OffsetStatus.OPEN, 2),
        (12, 13, OffsetStatus.OPEN, None),
        (14, 15, OffsetStatus.ACKNOWLEDGED, 1),
        (16, 19, OffsetStatus.ABOVE, None),
    ] == named(stored, 0, 20)


def test_state_without_a_start_offset_has_no_ranges():
    assert [] == named(state(None), 0, 20)


def test_ranges_without_a_log_end_end_with_the_state():
    assert [(0, 4, OffsetStatus.ARCHIVED, 5)] == named(
        state(0, (0, 4, ARCHIVED, 5)), None, None
    )


def test_archiving_and_unknown_states_have_their_own_status():
    stored = state(0, (0, 4, ARCHIVING, 5), (5, 6, DeliveryState(99), 1))

    assert [
        (0, 4, OffsetStatus.ARCHIVING, 5),
        (5, 6, OffsetStatus.UNKNOWN, 1),
        (7, 9, OffsetStatus.ABOVE, None),
    ] == named(stored, 0, 10)


def test_offsets_before_the_log_start_are_removed():
    stored = state(0, (0, 1, ACKNOWLEDGED, 1), (2, 5, AVAILABLE, 1))

    assert [
        (0, 1, OffsetStatus.ACKNOWLEDGED, 1),
        (2, 3, OffsetStatus.REMOVED, None),
        (4, 5, OffsetStatus.OPEN, 1),
        (6, 7, OffsetStatus.ABOVE, None),
    ] == named(stored, 4, 8)


def test_window_extends_from_the_start_offset_to_the_last_stored_offset():
    stored = state(100, (101, 109, ACKNOWLEDGED, 1))
    inspection = PartitionState(
        start_offset=100, end_offset=200, ranges=offset_ranges_of(stored, 0, 200)
    )

    assert 10 == inspection.window
    assert 100 == inspection.first_unsettled
    assert 9 == inspection.count(OffsetStatus.ACKNOWLEDGED)
    assert 91 == inspection.count(OffsetStatus.OPEN, OffsetStatus.ABOVE)


def test_delivery_counts_include_only_unsettled_offsets():
    stored = state(0, (0, 1, AVAILABLE, 2), (2, 2, ARCHIVED, 5), (4, 6, AVAILABLE, 1))
    inspection = PartitionState(
        start_offset=0, end_offset=9, ranges=offset_ranges_of(stored, 0, 9)
    )

    assert {1: 3, 2: 2} == inspection.delivery_counts


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9)), max_size=8),
    st.integers(0, 40),
    st.integers(0, 80),
)
def test_ranges_have_no_gaps_and_no_overlaps(pieces, log_start, end):
    batches, at = [], 5
    for gap, length in pieces:
        batches.append((at + gap, at + gap + length - 1, AVAILABLE, 1))
        at += gap + length
    ranges = offset_ranges_of(state(5, *batches), log_start, end)

    next_offset = 5
    for each in ranges:
        assert (next_offset, True) == (each.first_offset, each.count > 0)
        next_offset = each.last_offset + 1
    assert next_offset == max(at, end, 5)
