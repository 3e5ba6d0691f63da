"""Which tasks run alone, and for how long others wait for them."""

import math

import pytest

pytest.importorskip("taskiq", reason="needs sharecons[taskiq]")

from sharecons.taskiq.held_tasks import HeldTask, TaskLease
from sharecons.taskiq.isolation import LIMIT, MAX_HUNG, Isolation, deliveries_left


def make_item(*, suspect: bool = True) -> HeldTask:
    return HeldTask(None, TaskLease(3600.0), deliveries_left=1 if suspect else None)


def start(isolation: Isolation, item: HeldTask, now: float, *, busy: int = 0) -> bool:
    """Start a task if it can start; return whether it could."""
    if not isolation.allows(item, now, busy=busy):
        return False
    isolation.on_started(item, now)
    return True


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (5, [None, None, 2, 1, 0, 0]),
        (0, [None, None, 2, 1, 0, 0]),
        (3, [None, 1, 0, 0]),
        (2, [None, 0, 0]),
    ],
)
def test_last_three_deliveries_are_suspect_but_never_the_first(limit, expected) -> None:
    counts = range(1, len(expected) + 1)

    assert expected == [deliveries_left(count, limit) for count in counts]


def test_suspect_waits_for_other_tasks_and_others_wait_for_it() -> None:
    isolation, suspect, other = Isolation(), make_item(), make_item(suspect=False)

    assert not start(isolation, suspect, 0.0, busy=1)
    assert LIMIT == isolation.next_check(math.inf, is_blocked=True)
    assert start(isolation, suspect, 1.0)
    assert not start(isolation, other, 2.0, busy=1)
    assert isolation.is_running(2.0)
    isolation.on_ended(suspect)
    assert start(isolation, other, 3.0)


def test_suspect_that_hangs_holds_others_up_for_a_limited_time() -> None:
    isolation, suspect, other = Isolation(), make_item(), make_item(suspect=False)
    start(isolation, suspect, 0.0)

    assert not start(isolation, other, LIMIT - 1.0, busy=1)
    assert LIMIT == isolation.next_check(math.inf, is_blocked=True)
    assert not isolation.is_running(LIMIT)
    assert start(isolation, other, LIMIT, busy=1)


def test_suspect_does_not_wait_for_a_task_that_hangs_nor_do_later_ones() -> None:
    isolation, first, second = Isolation(), make_item(), make_item()

    assert not start(isolation, first, 0.0, busy=1)
    assert start(isolation, first, LIMIT, busy=1)
    isolation.on_ended(first)
    assert start(isolation, second, LIMIT, busy=1)


def test_suspects_that_hang_show_that_tasks_are_slow() -> None:
    isolation = Isolation()
    hung = [make_item() for _ in range(MAX_HUNG)]
    now = 0.0
    for busy, item in enumerate(hung):
        start(isolation, item, now, busy=busy)
        now += 2 * LIMIT
        start(isolation, item, now, busy=busy)
        now += LIMIT

    assert not isolation.is_running(now)
    assert start(isolation, make_item(), now, busy=5)
    assert not isolation.is_running(now)
    isolation.on_ended(hung[0])
    assert not start(isolation, make_item(), now, busy=5)


def test_delayed_task_wakes_the_receiver_beside_a_suspect() -> None:
    isolation = Isolation()

    assert 5.0 == isolation.next_check(5.0, is_blocked=False)
    start(isolation, make_item(), 0.0)
    assert 5.0 == isolation.next_check(5.0, is_blocked=False)
    assert LIMIT == isolation.next_check(50.0, is_blocked=False)


def test_one_record_is_taken_first_and_after_a_suspect() -> None:
    isolation, usual = Isolation(), make_item(suspect=False)
    taken = [isolation.max_taken]
    for items in ([usual], [], [usual, usual], [usual, make_item()], [usual]):
        isolation.on_taken(items)
        taken.append(isolation.max_taken)

    assert [1, 2, 2, 4, 1, 2] == taken
