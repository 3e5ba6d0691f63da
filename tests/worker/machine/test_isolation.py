"""Records that perhaps end their process run alone, and have a dead letter before."""

import itertools
from typing import Any

import pytest

from sharecons.worker.machine.actions import Copy, Warn
from sharecons.worker.machine.isolation import LIMIT, MAX_HUNG, MAX_REST
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.machine.topic_settings import TopicSettings
from sharecons.worker.machine.worker_machine import WorkerMachine
from sharecons.worker.outcomes import DeadLettered, Released
from sharecons.worker.retry_policy import RetryPolicy
from tests.worker.machine.simulated_worker import FakeRecord


class Working:
    """A machine of one handler, with a time that the test sets."""

    def __init__(self, *, dead_letter: str | None = "dead", **settings: Any) -> None:
        handler = HandlerSettings(dead_letter=dead_letter, **settings)
        self.machine = WorkerMachine(
            TopicSettings({"orders": handler}, "billing"),
            concurrency=10,
            max_bytes=1 << 20,
            chance=lambda: 0.5,
        )
        self.now = 0.0
        self.offsets = itertools.count()
        self.actions: list[Any] = []

    def take(self, *delivery_counts: int, key: bytes | None = None) -> None:
        records = [
            FakeRecord(
                next(self.offsets), key=key, delivery_count=each, lock_deadline=3600.0
            )
            for each in delivery_counts
        ]
        items = self.machine.new_items(records, self.now, self.now)
        self.actions += self.machine.on_taken(items, self.now)

    def start(self) -> Any:
        call = self.machine.next_call(self.now)
        if call is not None:
            self.actions += self.machine.on_call_begins(call, self.now)
        return call

    def start_all(self) -> list[Any]:
        calls = []
        while (call := self.start()) is not None:
            calls.append(call)
        return calls

    def end(self, call: Any, error: Exception | None = None) -> None:
        results = [error] * len(call.items)
        self.actions += self.machine.on_results(call, results, self.now, 0.0)
        self.machine.on_call_ended(call)

    def confirm_copies(self) -> None:
        for action in [each for each in self.actions if isinstance(each, Copy)]:
            if self.machine.is_current(action):
                self.actions += self.machine.on_copied(action)

    @property
    def letters(self) -> list[DeadLettered]:
        copies = [each for each in self.actions if isinstance(each, Copy)]
        outcomes = [each.outcome for each in copies]
        return [each for each in outcomes if isinstance(each, DeadLettered)]


def test_suspect_waits_for_other_calls_and_then_runs_alone() -> None:
    working = Working()
    working.take(1, 1)
    others = working.start_all()
    working.take(3, 1)

    assert [] == working.start_all()
    working.end(others[0])
    assert [] == working.start_all()
    working.end(others[1])
    (alone,) = working.start_all()
    assert [3] == [item.record.delivery_count for item in alone.items]
    working.end(alone)
    assert 1 == len(working.start_all())
    (warning,) = [each for each in working.actions if isinstance(each, Warn)]
    assert (3, 1) == (warning.fields["delivery_count"], warning.fields["records"])


def test_suspects_run_one_after_the_other() -> None:
    working = Working()
    working.take(3, 4, 3)

    for _ in range(3):
        (call,) = working.start_all()
        working.end(call)

    assert not working.machine.scheduler.isolation.is_active


def test_suspect_that_hangs_does_not_stop_the_worker() -> None:
    working = Working()
    working.take(3, 1)
    working.start_all()

    assert LIMIT == working.machine.next_due()
    working.now = LIMIT
    assert 1 == len(working.start_all())
    assert not working.machine.scheduler.isolation.is_active


def test_suspect_does_not_wait_for_a_call_that_hangs() -> None:
    working = Working()
    working.take(1)
    working.start_all()
    working.take(3)

    assert [] == working.start_all()
    assert LIMIT == working.machine.next_due()
    working.now = LIMIT
    assert 1 == len(working.start_all())


def hold_up(working: Working, until: float) -> float:
    """Call what can be called while time passes; return how long others waited."""
    held_up = 0.0
    while working.now < until:
        working.start_all()
        if working.machine.scheduler.isolation.is_active:
            held_up += 1.0
        working.now += 1.0
    return held_up


def test_suspects_that_hang_hold_the_others_up_for_a_minute_in_all() -> None:
    working = Working()
    working.take(1)
    working.start_all()
    working.take(*[3] * 6, 1)

    assert 2 * MAX_HUNG * LIMIT == hold_up(working, 600.0)
    assert 8 == working.machine.scheduler.running
    working.take(4)
    assert 9 == len([*working.start_all(), *range(8)])


def test_suspects_run_alone_again_once_one_that_hung_has_ended() -> None:
    working = Working()
    working.take(*[3] * 4)
    hung = working.start_all()
    while len(hung) < 4:
        working.now += LIMIT
        hung += working.start_all()
    working.end(hung[0])
    working.end(hung[3])
    working.take(3, 1)

    (alone,) = working.start_all()

    assert [3] == [item.record.delivery_count for item in alone.items]


def test_suspects_do_not_wait_again_for_a_call_that_hangs() -> None:
    working = Working()
    working.take(1)
    working.start_all()
    working.take(*[3] * 5)
    assert [] == working.start_all()
    working.now = LIMIT

    for _ in range(5):
        (call,) = working.start_all()
        working.end(call)

    assert not working.machine.scheduler.isolation.is_active


def test_suspect_of_a_handler_whose_calls_hang_stops_no_other_handler() -> None:
    working = Working(concurrency=1)
    working.take(1)
    working.start_all()
    working.take(3, 1)
    working.start_all()
    working.now = LIMIT

    assert [] == working.start_all()
    assert not working.machine.scheduler.isolation.is_active


def test_suspect_that_has_failed_is_alone_until_its_next_attempt_has_ended() -> None:
    working = Working(retry=RetryPolicy(initial=0.5, jitter=0.0))
    working.take(3)
    working.end(working.start(), TimeoutError("slow"))
    working.take(1)

    assert [] == working.start_all()
    assert 2.0 == working.machine.next_due()
    working.now = 2.0
    (again,) = working.start_all()
    assert [3] == [item.record.delivery_count for item in again.items]
    working.end(again)
    (other,) = working.start_all()
    assert [1] == [item.record.delivery_count for item in other.items]
    (_,) = [each for each in working.actions if isinstance(each, Warn)]


def test_suspect_that_waits_for_long_does_not_stop_the_worker() -> None:
    working = Working(retry=RetryPolicy(initial=60.0, jitter=0.0))
    working.take(3)
    working.end(working.start(), TimeoutError("slow"))
    working.take(1)

    assert 1 == len(working.start_all())
    working.now = 60.0
    working.take(1)
    assert 2 == len(working.start_all())


def test_suspects_that_fail_wait_alone_for_little_more_than_two_minutes() -> None:
    """All waits, of 2 and 4 s each, take ten minutes."""
    working = Working(retry=RetryPolicy(initial=0.5, jitter=0.0))
    working.take(*[3] * 100, 1)
    called: dict[int, float] = {}
    while len(called) < 101:
        calls = working.start_all()
        for call in calls:
            called.setdefault(call.items[0].record.offset, working.now)
        working.now += 0.1
        for call in calls:
            working.end(call, TimeoutError("no database"))
            working.confirm_copies()

    assert MAX_REST <= called[100] <= 1.5 * MAX_REST
    assert max(called.values()) == called[100]


def test_suspects_run_in_the_order_of_positions_and_next_time_against_it() -> None:
    working = Working()
    working.take(3, 3, 4, 4, 3)
    called = []
    for _ in range(5):
        call = working.start()
        called += [item.record.offset for item in call.items]
        working.end(call)

    assert [3, 2, 0, 1, 4] == called


def test_suspect_whose_lock_is_lost_isolates_nothing() -> None:
    working = Working()
    working.take(3, 1)
    suspect = working.machine.scheduler.held[0]

    working.machine.on_locks_lost([suspect], "gone")

    assert 1 == len(working.start_all())


def test_suspect_waits_for_calls_after_another_was_lost_in_its_wait() -> None:
    working = Working()
    working.take(1)
    working.start_all()
    working.take(3)
    assert [] == working.start_all()
    working.machine.on_locks_lost([working.machine.scheduler.held[1]], "gone")
    assert [] == working.start_all()
    working.now = 2 * LIMIT
    working.take(3)

    assert [] == working.start_all()
    assert 3 * LIMIT == working.machine.next_due()


def test_last_delivery_is_a_dead_letter_without_a_call() -> None:
    working = Working()
    working.take(5)

    assert [] == working.start_all()
    (letter,) = working.letters
    assert "its last delivery, after 4 without an outcome: its handler is not" in (
        letter.reason
    )
    assert "deliveries" == letter.cause


def test_last_delivery_without_a_dead_letter_queue_runs_alone() -> None:
    working = Working(dead_letter=None)
    working.take(5, 1)

    (call,) = working.start_all()

    assert [5] == [item.record.delivery_count for item in call.items]


def test_last_delivery_of_two_is_called() -> None:
    working = Working()
    working.machine.decisions.delivery_limit = 2
    working.take(2)

    assert 1 == len(working.start_all())


@pytest.mark.parametrize(
    ("limit", "count", "expected"),
    [
        (5, 3, Released),
        (5, 4, DeadLettered),
        (3, 1, Released),
        (3, 2, DeadLettered),
        (2, 1, Released),
        (2, 2, DeadLettered),
    ],
)
def test_release_before_a_delivery_without_a_call_is_a_dead_letter(
    limit: int, count: int, expected: type
) -> None:
    working = Working()
    working.machine.decisions.delivery_limit = limit
    working.take(count)
    (item,) = working.machine.scheduler.held

    outcome = working.machine.decisions.instead_of_release(item, Released("it stops"))

    assert expected is type(outcome)


def test_one_record_is_taken_first_and_after_a_suspect() -> None:
    working = Working()
    isolation = working.machine.scheduler.isolation
    taken = [isolation.max_taken]
    for counts in ((1,), (1, 1), (3,), (1,)):
        working.take(*counts)
        taken.append(isolation.max_taken)

    assert [1, 2, 4, 1, 2] == taken


def test_one_record_is_taken_after_a_suspect_that_is_blocked() -> None:
    working = Working(key_order=True)
    isolation = working.machine.scheduler.isolation
    for counts in ((1,), (1, 1), (3,)):
        working.take(*counts, key=b"a")

    assert 1 == isolation.max_taken


def test_takes_without_records_do_not_raise_the_limit() -> None:
    working = Working()
    isolation = working.machine.scheduler.isolation
    for _ in range(10):
        working.take()
    assert 1 == isolation.max_taken

    working.take(1)
    assert 2 == isolation.max_taken
