"""When the locks of held records are renewed, and when they are lost."""

import math
from typing import Final, NamedTuple

import hypothesis.strategies as st
from hypothesis import given

from sharecons.protocol.acknowledge.renewals import RenewalSchedule


class Settings(NamedTuple):
    max_lock_time: float = 3600.0


SETTINGS: Final = Settings()


class Held:
    """A record that is held until the end of its lease."""

    settings = SETTINGS
    has_outcome = False

    def __init__(self, name: object, lease_end: float = math.inf) -> None:
        self.name = name
        self.lease_end = lease_end


class Locks:
    """A schedule, and the deadlines that a broker has confirmed."""

    def __init__(self, max_lock_time: float = math.inf, *, renews: bool = True) -> None:
        self.schedule = RenewalSchedule[Held](renews=renews)
        self._max_lock_time = max_lock_time
        self.deadlines: dict[Held, float] = {}
        self.held_too_long: list[Held] = []

    def add(self, name: str, now: float = 0.0) -> Held:
        item = Held(name, now + self._max_lock_time)
        self.deadlines[item] = now + 30.0
        self.schedule.add(item, deadline=now + 30.0, duration=30.0)
        return item

    def take_due(self, now: float) -> tuple[list[Held], list[Held]]:
        due = self.schedule.take_due(now, self.deadlines.__getitem__)
        self.held_too_long += due.held_too_long
        return due.renew, due.lost

    def run(self, *, confirm: bool) -> list[tuple[float, str]]:
        """Let time pass until all locks are lost; return the time of each action."""
        done: list[tuple[float, str]] = []
        while (now := self.schedule.next_check()) < math.inf:
            renewed, lost = self.take_due(now)
            done += [(now, "renew") for _ in renewed] + [(now, "lost") for _ in lost]
            if confirm:
                self.deadlines |= dict.fromkeys(renewed, now + 30.0)
        return done


def test_lock_is_renewed_at_half_of_its_duration() -> None:
    locks = Locks()
    item = locks.add("a")

    assert 15.0 == locks.schedule.next_check()
    assert ([], []) == locks.take_due(14.9)
    assert ([item], []) == locks.take_due(15.0)
    locks.deadlines[item] = 45.5
    assert ([], []) == locks.take_due(19.5)
    assert 30.5 == locks.schedule.next_check()


def test_due_locks_after_a_group_that_was_renewed_already_are_returned() -> None:
    locks = Locks()
    renewed, due = locks.add("a"), locks.add("b", now=0.5)
    locks.deadlines[renewed] = 50.0

    assert ([due], []) == locks.take_due(16.0)


def test_unconfirmed_renewal_is_repeated_until_the_lock_ends() -> None:
    locks = Locks()
    locks.add("a")

    assert [
        (15.0, "renew"),
        (19.5, "renew"),
        (24.0, "renew"),
        (28.5, "renew"),
        (30.0, "lost"),
    ] == locks.run(confirm=False)


def test_record_is_held_too_long_once_and_keeps_its_lock_meanwhile() -> None:
    locks = Locks(max_lock_time=50.0)
    item = locks.add("a")
    for now in (15.0, 30.0, 45.0):
        assert ([item], []) == locks.take_due(now)
        locks.deadlines[item] = now + 30.0
    locks.take_due(49.9)
    assert 50.0 == locks.schedule.next_check()
    assert [] == locks.held_too_long

    locks.take_due(50.0)
    assert [item] == locks.held_too_long
    assert ([item], []) == locks.take_due(60.0), "its dead letter is being written"
    assert [item] == locks.held_too_long


def test_record_without_renewals_is_held_too_long_before_its_lock_ends() -> None:
    locks = Locks(max_lock_time=20.0, renews=False)
    item = locks.add("a")

    assert ([], []) == locks.take_due(20.0)
    assert [item] == locks.held_too_long


def test_renewing_can_be_stopped() -> None:
    locks = Locks()
    locks.add("a")

    assert locks.schedule.stop_renewing()
    assert not locks.schedule.stop_renewing()
    assert [(30.0, "lost")] == locks.run(confirm=True)


def test_records_that_arrived_together_are_confirmed_separately() -> None:
    """Two of four renewals fail; a record that arrives later has its own deadline."""
    locks = Locks()
    items = [locks.add(f"r{number}") for number in range(4)]
    assert (items, []) == locks.take_due(15.0)
    locks.deadlines |= dict.fromkeys(items[:2], 45.0)
    locks.schedule.remove(items[0])
    late = Held("late")
    locks.deadlines[late] = 30.0
    locks.schedule.add(late, deadline=30.0, duration=15.0)

    assert (items[2:], []) == locks.take_due(19.5)
    assert ([late], []) == locks.take_due(22.5)
    renewed, lost = locks.take_due(30.0)
    assert [items[1]] == renewed
    assert {*items[2:], late} == {*lost}
    locks.schedule.remove(items[1])
    assert math.inf == locks.schedule.next_check()


def test_renewal_that_is_confirmed_after_one_that_failed_keeps_its_lock() -> None:
    locks = Locks()
    failed, renewed = locks.add("a"), locks.add("b")
    assert ([failed, renewed], []) == locks.take_due(15.0)
    locks.deadlines[renewed] = 45.0

    assert ([failed], []) == locks.take_due(19.5)
    assert ([renewed], [failed]) == locks.take_due(30.0)


def test_settled_record_is_not_renewed() -> None:
    locks = Locks()
    items = [locks.add("a"), locks.add("b")]
    locks.schedule.remove(items[0])
    locks.schedule.remove(items[0])

    assert ([items[1]], []) == locks.take_due(20.0)


def test_late_check_finds_lost_locks_and_renews_none_of_them() -> None:
    """The event loop was blocked for longer than the lock."""
    locks = Locks()
    first = locks.add("a")
    second = locks.add("b", now=20.0)

    assert ([second], [first]) == locks.take_due(40.0)


@given(
    durations=st.lists(st.floats(1.0, 100.0), min_size=1, max_size=10),
    lateness=st.floats(0.0, 0.3),
    fails=st.lists(st.booleans(), max_size=200),
)
def test_lock_is_lost_only_if_every_renewal_failed(durations, lateness, fails) -> None:
    schedule = RenewalSchedule()
    items = {}
    for number, duration in enumerate(durations):
        item = Held(number, 500.0)
        items[item] = (duration, duration)
        schedule.add(item, deadline=duration, duration=duration)
    failed = iter(fails)
    now = 0.0
    for _ in range(400):
        if schedule.next_check() == math.inf:
            break
        now = max(now, schedule.next_check()) + lateness * min(durations) / 10
        due = schedule.take_due(now, lambda item: items[item][1])
        for item in due.renew:
            duration, deadline = items[item]
            assert now < deadline
            if not next(failed, False):
                items[item] = duration, now + duration
        for item in due.held_too_long:
            assert now >= 500.0
            schedule.remove(item)
        for item in due.lost:
            assert now >= items[item][1]
            assert True in fails
