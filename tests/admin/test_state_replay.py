"""Replay of the records that share coordinators write."""

from hypothesis import given
from hypothesis import strategies as st

from sharecons.admin.state_replay import (
    StateReplay,
    combine_batches,
    state_partition_of,
)
from sharecons.protocol.admin.models import DeliveryState, StateBatch
from sharecons.protocol.admin.state_records import StateKey, StateSnapshot, StateUpdate
from sharecons.protocol.partitions import SharePartition

ORDERS = SharePartition(bytes(range(16)), 3)
KEY = StateKey("billing", ORDERS)
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = DeliveryState


def batch(first, last, state=AVAILABLE, count=1):
    return StateBatch(
        first_offset=first, last_offset=last, state=state, delivery_count=count
    )


def snapshot(start=0, *batches, epoch=1):
    return StateSnapshot(
        state_epoch=epoch, leader_epoch=0, start_offset=start, batches=batches
    )


def update(*batches, start=None):
    return StateUpdate(leader_epoch=None, start_offset=start, batches=batches)


def replay(*records):
    states = StateReplay()
    for timestamp, record in enumerate(records):
        states.apply(KEY, record, timestamp)
    return states


def test_updates_are_applied_to_the_snapshot():
    found = replay(
        snapshot(10, batch(10, 19)),
        update(batch(12, 13, ACKNOWLEDGED)),
        update(batch(15, 15, AVAILABLE, 2), start=11),
    ).state(KEY)

    assert 11 == found.state.start_offset
    assert 2 == found.last_written
    assert (
        batch(11, 11),
        batch(12, 13, ACKNOWLEDGED),
        batch(14, 14),
        batch(15, 15, AVAILABLE, 2),
        batch(16, 19),
    ) == found.state.batches


def test_snapshot_replaces_earlier_records():
    found = replay(
        snapshot(0, batch(0, 9)), update(batch(20, 29)), snapshot(7, epoch=5)
    ).state(KEY)

    assert (7, 5, ()) == (
        found.state.start_offset,
        found.state.state_epoch,
        found.state.batches,
    )


def test_tombstone_deletes_the_state():
    assert replay(snapshot(0, batch(0, 9)), None).state(KEY) is None


def test_update_without_a_snapshot_is_applied():
    found = replay(update(batch(5, 9, ACKNOWLEDGED), start=5)).state(KEY)

    assert 5 == found.state.start_offset
    assert (batch(5, 9, ACKNOWLEDGED),) == found.state.batches


def test_state_of_another_group_is_separate():
    assert replay(snapshot()).state(StateKey("shipping", ORDERS)) is None


STATES = st.sampled_from(DeliveryState)
BATCHES = st.lists(
    st.builds(
        lambda first, length, state, count: batch(first, first + length, state, count),
        st.integers(0, 30),
        st.integers(0, 12),
        STATES,
        st.integers(1, 3),
    ),
    max_size=12,
)


@given(BATCHES, st.integers(0, 20))
def test_batch_with_the_highest_precedence_applies(batches, start):
    combined = combine_batches(batches, start)

    expected = {}
    for each in batches:
        for offset in range(each.first_offset, each.last_offset + 1):
            weight = (each.delivery_count, each.state)
            if offset >= start:
                expected[offset] = max(weight, expected.get(offset, weight))
    assert expected == {
        offset: (each.delivery_count, each.state)
        for each in combined
        for offset in range(each.first_offset, each.last_offset + 1)
    }


@given(BATCHES)
def test_batches_are_ordered_and_merged(batches):
    combined = combine_batches(batches, 0)

    for one, other in zip(combined, combined[1:], strict=False):
        assert one.last_offset < other.first_offset
        alike = (one.state, one.delivery_count) == (other.state, other.delivery_count)
        assert not (alike and one.last_offset + 1 == other.first_offset)


def test_partitions_of_keys_are_those_of_kafka_4_3_0():
    # Partitions as a broker chose them, of a state topic with three.
    assert [0, 0, 1, 2] == [
        state_partition_of(key, 3)
        for key in (
            "inspg-insp-1ff8a4:Va26ZeLZQsiVeRlQZFcdbA:0",
            "h1-g503522:5kLBZSr9S9yUVDGfT2sYPg:1",
            "h1-g503522:5kLBZSr9S9yUVDGfT2sYPg:0",
            "h1-x:ck0mA1dwTK6VLCADrIfPUg:0",
        )
    ]


def test_java_minimum_hash_maps_to_the_first_partition():
    # Its hash is -2147483648, whose absolute value is no 32-bit integer.
    assert 0 == state_partition_of("polygenelubricants", 7)
