"""Limits of batches, the target of Trigger.AvailableNow, timeouts, and tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons._record import TopicPartition
from sharecons.protocol.admin.models import GroupOffset
from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.planning import (
    AvailableNowTarget,
    BatchLimits,
    IdleTimeout,
    plan_tasks,
)

ID = bytes(range(16))
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def acquired(first, last, partition=0, count=1, topic="orders"):
    return AcquiredRange(topic, ID, partition, first, last, count)


def offsets(ranges):
    return [
        (each.partition, offset, each.delivery_count)
        for each in ranges
        for offset in range(each.first_offset, each.last_offset + 1)
    ]


# BatchLimits.


def test_batch_without_limits_ends_at_the_ledgers_end():
    assert BatchLimits().batch_end(10, 500, overdue=False) == 500


def test_batch_has_at_most_max_offsets():
    assert BatchLimits(max_offsets=100).batch_end(10, 500, overdue=False) == 110
    assert BatchLimits(max_offsets=100).batch_end(10, 60, overdue=False) == 60


def test_batch_below_min_offsets_waits_until_overdue():
    assert BatchLimits(min_offsets=100).batch_end(10, 60, overdue=False) == 10
    assert BatchLimits(min_offsets=100).batch_end(10, 60, overdue=True) == 60
    assert BatchLimits(min_offsets=100).batch_end(10, 110, overdue=False) == 110


def test_overdue_batch_without_offsets_is_empty():
    assert (
        BatchLimits(max_offsets=5, min_offsets=3).batch_end(10, 10, overdue=True) == 10
    )


# The target of Trigger.AvailableNow.


def group_offset(start, lag=None):
    return GroupOffset(start_offset=start, leader_epoch=3, lag=lag)


def test_target_of_empty_topics_is_reached():
    assert AvailableNowTarget({}, {}, 7).is_reached
    assert AvailableNowTarget({P0: (0, 0)}, {}, 7).is_reached
    assert AvailableNowTarget({P0: (5, 5)}, {P0: group_offset(5)}, 7).is_reached


def test_target_is_reached_at_the_last_offset_of_each_partition():
    target = AvailableNowTarget({P0: (0, 10), P1: (0, 5)}, {}, 0)
    target.mark_acquired([acquired(0, 8)])
    target.mark_acquired([acquired(0, 4, partition=1)])
    assert not target.is_reached
    target.mark_acquired([acquired(9, 9)])
    assert target.is_reached
    target.mark_acquired([acquired(10, 19)])
    assert target.is_reached


def test_target_is_reached_when_the_start_offset_has_passed_it():
    target = AvailableNowTarget({P0: (0, 10)}, {P0: group_offset(3)}, 0)
    target.mark_progress({P0: group_offset(9), P1: group_offset(50)})
    assert not target.is_reached
    target.mark_progress({P0: group_offset(10)})
    assert target.is_reached


def test_target_is_reached_when_the_group_has_no_lag():
    target = AvailableNowTarget({P0: (0, 10)}, {P0: group_offset(0, 4)}, 0)
    target.mark_progress({P0: group_offset(0, 1)})
    assert not target.is_reached
    target.mark_progress({P0: group_offset(0, 0)})
    assert target.is_reached
    assert AvailableNowTarget({P0: (0, 10)}, {P0: group_offset(0, 0)}, 0).is_reached


def test_expected_end_is_the_position_after_the_missing_offsets():
    # From where the group starts; where its log begins if that is unknown.
    assert AvailableNowTarget(
        {P0: (0, 10), P1: (2, 5)}, {P0: group_offset(4), P1: group_offset(None)}, 100
    ).expected_end == (109)
    assert AvailableNowTarget({P0: (8, 10)}, {P0: group_offset(4)}, 0).expected_end == 2
    assert (
        AvailableNowTarget({P0: (0, 10)}, {P0: group_offset(4, 2)}, 0).expected_end == 2
    )


def test_target_is_not_reached_while_a_partition_has_no_leader():
    target = AvailableNowTarget(
        {P0: (0, 10)}, {}, 0, leaderless=[P1], topic_ids={"orders": ID}
    )
    target.mark_acquired([acquired(0, 9)])
    assert not target.is_reached
    assert target.unknown_partitions([P0, P1]) == [P1]

    assert not target.add_partitions({}, {}, [P0, P1])
    assert not target.is_reached
    assert target.add_partitions({P1: (0, 5)}, {}, [P0, P1])
    assert target.expected_end == 15
    assert not target.is_reached
    target.mark_acquired([acquired(0, 4, partition=1)])
    assert target.is_reached
    # Known by now, whether it has a leader or not.
    assert not target.add_partitions({}, {}, [P0, P1])
    assert target.is_reached


def test_target_does_not_grow_by_partitions_without_lag():
    target = AvailableNowTarget(
        {P0: (0, 0)}, {}, 0, leaderless=[P1], topic_ids={"orders": ID}
    )

    assert not target.add_partitions({P1: (0, 5)}, {P1: group_offset(5)}, [P0, P1])
    assert target.is_reached


def test_target_drops_deleted_and_recreated_topics():
    other = TopicPartition("bills", 0)
    ids = {"orders": ID, "bills": bytes(16)}
    target = AvailableNowTarget({P0: (0, 10), other: (0, 5)}, {}, 0, topic_ids=ids)

    target.retain_topics({"orders": ID})
    assert target.expected_end == 10
    target.retain_topics({"orders": ID, "bills": bytes(16)})
    assert target.unknown_partitions([P0, other]) == [other]
    assert not target.is_reached
    target.retain_topics({"orders": bytes(16)})
    assert target.is_reached
    assert target.add_partitions({P0: (0, 3)}, {}, [P0])
    assert target.expected_end == 3


def test_idle_timeout_restarts_when_the_target_grows():
    idle_timeout = IdleTimeout(10, expected_end=100)
    assert not idle_timeout.is_expired(100, idle_since=20.0, now=20.0)
    idle_timeout.expected_end = 150

    assert not idle_timeout.is_expired(120, idle_since=29.0, now=31.0)
    assert not idle_timeout.is_expired(150, idle_since=40.0, now=40.0)
    assert idle_timeout.is_expired(170, idle_since=50.0, now=50.0)


def test_idle_timeout_expires_without_new_offsets():
    idle_timeout = IdleTimeout(10, expected_end=100)

    assert not idle_timeout.is_expired(50, idle_since=5.0, now=14.9)
    assert not idle_timeout.is_expired(60, idle_since=14.0, now=23.9)
    assert idle_timeout.is_expired(60, idle_since=14.0, now=24.0)


def test_idle_timeout_expires_after_the_expected_end_though_more_arrives():
    idle_timeout = IdleTimeout(10, expected_end=100)

    assert not idle_timeout.is_expired(100, idle_since=20.0, now=20.0)
    assert not idle_timeout.is_expired(200, idle_since=29.9, now=29.9)
    assert idle_timeout.is_expired(300, idle_since=30.0, now=30.0)


# Tasks.


def test_empty_batch_has_no_task():
    assert plan_tasks([], min_tasks=8, max_records=None) == []


def test_small_batch_of_many_partitions_is_one_task():
    ranges = [acquired(0, 9, partition=p) for p in range(20)]

    assert len(plan_tasks(ranges, min_tasks=None, max_records=None)) == 1


def test_large_batch_has_a_task_for_each_partition():
    ranges = [acquired(0, 9999, partition=p) for p in range(3)]

    assert len(plan_tasks(ranges, min_tasks=None, max_records=None)) == 3


def test_one_partition_is_divided_into_min_tasks():
    tasks = plan_tasks([acquired(0, 99_999)], min_tasks=8, max_records=None)

    assert [sum(t.size for t in task) for task in tasks] == [12_500] * 8


def test_no_task_exceeds_max_records():
    tasks = plan_tasks(
        [acquired(0, 99), acquired(0, 99, 1)], min_tasks=None, max_records=30
    )

    assert len(tasks) == 7
    assert max(sum(t.size for t in task) for task in tasks) <= 30


def test_no_task_is_empty_if_min_tasks_exceeds_the_offsets():
    tasks = plan_tasks([acquired(0, 2)], min_tasks=8, max_records=None)

    assert [offsets(task) for task in tasks] == [[(0, 0, 1)], [(0, 1, 1)], [(0, 2, 1)]]


def test_adjacent_ranges_of_a_batch_are_joined():
    ranges = [
        acquired(5, 9),
        acquired(0, 3, 1),
        acquired(0, 4),
        acquired(10, 12, count=2),
    ]

    tasks = plan_tasks(ranges, min_tasks=None, max_records=None)

    assert tasks == [[acquired(0, 9), acquired(10, 12, count=2), acquired(0, 3, 1)]]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 40), st.integers(1, 3)), max_size=20
    ),
    st.none() | st.integers(1, 30),
    st.none() | st.integers(1, 30),
)
def test_tasks_have_each_offset_once_and_equal_sizes(parts, min_tasks, max_records):
    nexts = dict.fromkeys(range(4), 0)
    ranges = []
    for partition, size, count in parts:
        first = nexts[partition]
        ranges.append(acquired(first, first + size - 1, partition, count))
        nexts[partition] += size + (size % 3)

    tasks = plan_tasks(ranges, min_tasks=min_tasks, max_records=max_records)

    planned = [offset for task in tasks for offset in offsets(task)]
    assert sorted(planned) == sorted(offsets(ranges))
    sizes = [len(offsets(task)) for task in tasks]
    assert max(sizes, default=1) - min(sizes, default=1) <= 1
    assert all(sizes)
    if max_records is not None:
        assert max(sizes, default=0) <= max_records
    assert tasks == plan_tasks(
        ranges[::-1], min_tasks=min_tasks, max_records=max_records
    )


@pytest.mark.parametrize("min_tasks", [2, 5])
def test_batch_has_at_least_min_tasks(min_tasks):
    assert (
        len(plan_tasks([acquired(0, 9)], min_tasks=min_tasks, max_records=None))
        == min_tasks
    )
