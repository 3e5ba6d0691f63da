"""Acknowledgements, locks and state of a share partition.

The expected values were measured on Kafka 4.3.0; see also test_same_histories.py.
"""

import pytest

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.share.coordinator_state import merge
from sharecons.testing.broker.share.deliveries import (
    AcknowledgeError,
    State,
    StateBatch,
)
from tests.broker.share_groups import (
    ACCEPT,
    ARCHIVED,
    AVAILABLE,
    RELEASE,
    RENEW,
    Group,
)


def test_start_offset_is_written_with_the_next_change():
    group = Group(10)
    group.fetch()
    group.acknowledge((0, 3, ACCEPT))
    group.acknowledge((4, 4, ACCEPT))

    assert 4 == group.state.start_offset
    assert 1 == group.state.delivery_complete


def test_offsets_before_the_start_are_ignored():
    group = Group(10)
    group.fetch()
    group.acknowledge((0, 4, ACCEPT))
    group.acknowledge((0, 9, ACCEPT))

    assert 10 == group.partition.start_offset


def test_group_can_disable_renewal():
    group = Group(10, may_renew=False)
    group.fetch()
    with pytest.raises(AcknowledgeError) as rejected:
        group.acknowledge((0, 4, RENEW))

    assert rejected.value.code is ErrorCode.invalid_record_state


def test_truncated_records_in_flight_are_removed():
    group = Group(10, 10)
    group.fetch(max_records=1)
    group.acknowledge((6, 9, RELEASE))
    group.partition.log_start_moved(8)
    group.log.start = 8

    assert 8 == group.partition.start_offset
    assert [(8, 9, 2), (10, 19, 1)] == group.fetch("bob")


def test_truncated_acquired_records_are_archived_at_lock_end():
    group = Group(10, 10)
    group.fetch(now=0.0)
    group.partition.log_start_moved(5)
    group.advance(now=30.0)

    assert [(5, 19, AVAILABLE, 1)] == group.written
    assert [(5, 19, 2)] == group.fetch("bob", now=30.0)


def test_compacted_batches_are_archived():
    group = Group(5, 5, 5)
    group.fetch(batch_size=1)
    group.release()
    del group.log.batches[0]

    assert [(5, 9, 2), (10, 14, 2)] == group.fetch(offset=0)
    assert ARCHIVED == group.partition.states()[0].state


def test_aborted_records_are_archived_instead_of_acquired():
    group = Group(3, 3, 3)

    assert [(0, 2, 1), (6, 8, 1)] == group.fetch(aborted=[(3, 5)])
    group.acknowledge((0, 2, ACCEPT), (6, 8, ACCEPT))
    assert 9 == group.partition.start_offset


def test_gap_is_filled_first():
    group = Group(5, 5, 5)
    group.fetch()
    group.acknowledge((5, 9, ACCEPT))
    group.move_leader()

    assert 0 == group.partition.next_fetch_offset()
    assert [(0, 4, 1)] == group.fetch("bob", max_records=5)
    assert [(10, 14, 1)] == group.fetch("bob", max_records=5)
    group.acknowledge((0, 4, ACCEPT), member="bob")
    assert 10 == group.partition.start_offset


def test_start_offset_waits_for_the_batch_in_which_the_gap_begins():
    group = Group(2, 1, 1)
    group.fetch()
    group.acknowledge((0, 1, RELEASE), (3, 3, ACCEPT))
    group.move_leader()
    one = {"max_records": 1, "record_limit": True}

    assert [(0, 0, 2)] == group.fetch(**one)  # the gap now begins at 1, not at 2
    group.acknowledge((0, 0, ACCEPT))
    assert 0 == group.partition.start_offset
    with pytest.raises(AcknowledgeError):
        group.acknowledge((0, 0, ACCEPT))

    assert [(1, 1, 2)] == group.fetch(**one)
    group.acknowledge((1, 1, ACCEPT))
    assert 2 == group.partition.start_offset
    group.acknowledge((0, 1, ACCEPT))


def test_gap_ends_at_the_next_state():
    group = Group(10)
    group.fetch()
    group.acknowledge((5, 9, RELEASE))
    group.move_leader()

    assert [(0, 4, 1)] == group.fetch("bob", max_records=1)


def test_overlapping_range_with_more_deliveries_wins():
    def batch(first, last, state, count):
        return StateBatch(first, last, State(state), count)

    old = [batch(0, 9, 0, 1), batch(10, 19, 2, 1)]
    new = [batch(5, 7, 0, 2), batch(8, 12, 4, 1), batch(10, 12, 0, 1)]

    assert [
        batch(2, 4, 0, 1),
        batch(5, 7, 0, 2),
        batch(8, 12, 4, 1),
        batch(13, 19, 2, 1),
    ] == merge(old, new, 2)


def test_equal_neighbours_are_merged():
    old = [StateBatch(0, 4, State.ACKNOWLEDGED, 1)]
    new = [StateBatch(5, 9, State.ACKNOWLEDGED, 1)]

    assert [StateBatch(0, 9, State.ACKNOWLEDGED, 1)] == merge(old, new, 0)
