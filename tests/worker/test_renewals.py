"""When the locks of held records are renewed, and when they are lost."""

import math

import hypothesis.strategies as st
from hypothesis import given

from sharecons.worker.renewals import RenewalSchedule
from sharecons.worker.scheduler import WorkItem


def held(schedule: RenewalSchedule, name: str, now: float = 0.0) -> WorkItem:
    item = WorkItem(name, 10)
    schedule.add(item, deadline=now + 30.0, duration=30.0, now=now)
    return item


def test_lock_is_renewed_at_half_of_its_duration() -> None:
    schedule = RenewalSchedule()
    item = held(schedule, "a")

    assert 15.0 == schedule.next_check()
    assert ([], []) == schedule.take_due(14.9)
    assert ([item], []) == schedule.take_due(15.0)
    schedule.on_renewed(item, 45.5)
    assert 30.5 == schedule.next_check()


def test_unconfirmed_renewal_is_repeated_until_the_lock_ends() -> None:
    schedule = RenewalSchedule()
    item = held(schedule, "a")
    times = []
    while (now := schedule.next_check()) < math.inf:
        due = schedule.take_due(now)
        times.append((now, len(due.renew), len(due.lost)))

    assert [
        (15.0, 1, 0),
        (19.5, 1, 0),
        (24.0, 1, 0),
        (28.5, 1, 0),
        (30.0, 0, 1),
    ] == times
    schedule.on_renewed(item, 60.0)
    assert math.inf == schedule.next_check(), "it is lost"


def test_record_is_not_renewed_after_its_longest_lease() -> None:
    schedule = RenewalSchedule(max_lease=70.0)
    item = held(schedule, "a")
    renewals = []
    lost = None
    while (now := schedule.next_check()) < math.inf:
        due = schedule.take_due(now)
        if due.renew:
            renewals.append(now)
            schedule.on_renewed(item, now + 30.0)
        if due.lost:
            lost = now

    assert [15.0, 30.0, 45.0] == renewals
    assert 75.0 == lost


def test_without_renewals_a_lock_ends_at_its_deadline() -> None:
    schedule = RenewalSchedule(renews=False)
    item = held(schedule, "a")

    assert 30.0 == schedule.next_check()
    assert ([], [item]) == schedule.take_due(30.0)


def test_records_that_arrived_together_are_renewed_together() -> None:
    schedule = RenewalSchedule()
    items = [held(schedule, f"r{number}") for number in range(100)]
    held(schedule, "later", now=3.0)

    assert (items, []) == schedule.take_due(15.0)


def test_settled_record_is_not_renewed() -> None:
    schedule = RenewalSchedule()
    items = [held(schedule, "a"), held(schedule, "b")]
    schedule.remove(items[0])
    schedule.remove(items[0])
    schedule.on_renewed(items[0], 99.0)

    assert ([items[1]], []) == schedule.take_due(20.0)


def test_late_check_finds_lost_locks_and_renews_none_of_them() -> None:
    """The event loop was blocked for longer than the lock."""
    schedule = RenewalSchedule()
    first = held(schedule, "a")
    second = held(schedule, "b", now=20.0)

    assert ([second], [first]) == schedule.take_due(40.0)


@given(
    durations=st.lists(st.floats(1.0, 100.0), min_size=1, max_size=10),
    lateness=st.floats(0.0, 0.3),
    fails=st.lists(st.booleans(), max_size=200),
)
def test_lock_is_lost_only_if_every_renewal_failed(durations, lateness, fails) -> None:
    schedule = RenewalSchedule(max_lease=500.0)
    items = {}
    for number, duration in enumerate(durations):
        item = WorkItem(number, 1)
        items[item] = (duration, duration)
        schedule.add(item, deadline=duration, duration=duration, now=0.0)
    failed = iter(fails)
    now = 0.0
    for _ in range(400):
        if schedule.next_check() == math.inf:
            break
        now = max(now, schedule.next_check()) + lateness * min(durations) / 10
        due = schedule.take_due(now)
        for item in due.renew:
            duration, deadline = items[item]
            assert now < deadline
            if not next(failed, False):
                items[item] = duration, now + duration
                schedule.on_renewed(item, now + duration)
        for item in due.lost:
            deadline = items[item][1]
            assert now >= deadline
            assert deadline >= 500.0 or True in fails
