"""Which held task the receiver receives next."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("taskiq", reason="needs sharecons[taskiq]")

from hypothesis import given
from hypothesis import strategies as st

from sharecons.taskiq.held_tasks import (
    MAX_DELAYED,
    HeldTask,
    HeldTasks,
    ReceiverCapacity,
    TaskLease,
)


def make_item(name: Any = None) -> HeldTask:
    return HeldTask(name, TaskLease(3600.0))


def test_tasks_are_given_in_order_and_due_ones_first() -> None:
    tasks, items = HeldTasks(), [make_item(number) for number in range(4)]
    for item, due in zip(items, (0.0, 5.0, 3.0, 0.0), strict=True):
        tasks.add(item, due, 0.0)

    assert tasks.take_next(1.0) is items[0]
    assert tasks.next_due() == 3.0
    assert tasks.take_next(6.0) is items[2]
    assert tasks.take_next(6.0) is items[1]
    assert tasks.take_next(6.0) is items[3]
    assert tasks.take_next(6.0) is None
    assert tasks.next_due() == math.inf
    assert tasks.held == tuple(items)


def test_too_many_delayed_tasks_fill_it_until_one_is_due() -> None:
    tasks = HeldTasks()
    for number in range(MAX_DELAYED):
        assert not tasks.is_full
        tasks.add(make_item(), 1.0 + number, 0.0)

    assert tasks.is_full
    assert tasks.take_next(1.0) is not None
    assert not tasks.is_full


def make_suspect(partition: int, left: int) -> HeldTask:
    record = SimpleNamespace(partition=partition, offset=7)
    return HeldTask(record, TaskLease(3600.0), deliveries_left=left)


def started(tasks: HeldTasks) -> list[int]:
    """Return the partitions of all tasks, in the order in which they start."""
    items = iter(lambda: tasks.take_next(0.0), None)
    return [item.record.partition for item in items]


@pytest.mark.parametrize(
    ("left", "expected"), [(2, [0, 1, 2]), (1, [2, 1, 0]), (0, [1, 2, 0])]
)
def test_suspects_of_several_brokers_start_in_another_order_at_each_delivery(
    left, expected
) -> None:
    tasks = HeldTasks()
    for partition in (1, 0, 2):
        tasks.add(make_suspect(partition, left), 0.0, 0.0)

    assert expected == started(tasks)


def test_suspects_with_the_fewest_deliveries_left_start_first() -> None:
    tasks = HeldTasks()
    tasks.add(make_item(SimpleNamespace(partition=3)), 0.0, 0.0)
    for partition, left in enumerate((2, 0, 1)):
        tasks.add(make_suspect(partition, left), 0.0, 0.0)

    assert [1, 2, 0, 3] == started(tasks)


@given(st.data())
def test_every_task_is_given_or_removed_once(data: st.DataObject) -> None:
    tasks, now = HeldTasks(), 0.0
    open_items: set[HeldTask] = set()
    given_items: set[HeldTask] = set()
    for _ in range(data.draw(st.integers(0, 60))):
        match data.draw(st.sampled_from(["add", "take", "remove", "wait"])):
            case "add":
                item = make_item()
                tasks.add(item, now + data.draw(st.integers(0, 3)), now)
                open_items.add(item)
            case "take":
                expected = tasks.peek(now)
                taken = tasks.take_next(now)
                assert expected is taken
                if taken is not None:
                    assert taken in open_items
                    assert taken not in given_items
                    given_items.add(taken)
            case "remove" if open_items:
                item = data.draw(st.sampled_from(sorted(open_items, key=id)))
                tasks.remove(item)
                tasks.remove(item)
                open_items.discard(item)
            case "wait":
                now += 1.0
        assert set(tasks.held) == open_items
        assert set(tasks.not_given()) == open_items - given_items
    while (taken := tasks.take_next(now + 4)) is not None:
        assert taken in open_items - given_items
        given_items.add(taken)
    assert tasks.not_given() == []
    assert tasks.next_due() == math.inf
    assert not tasks.is_full


@given(st.integers(1, 20), st.lists(st.integers(0, 20), max_size=60))
def test_capacity_never_exceeds_that_of_the_receiver(capacity, ends) -> None:
    shown, running = ReceiverCapacity(), 0
    most = 0
    for ending in ends:
        for _ in range(min(ending, running)):
            shown.on_ended()
            running -= 1
        while running < capacity:
            shown.on_requested()
            assert 1 <= shown.free <= capacity - running
            shown.on_given()
            running += 1
            if ending % 3:
                break
        most = max(most, running)
        assert shown.running == running
        assert shown.free == most - running
