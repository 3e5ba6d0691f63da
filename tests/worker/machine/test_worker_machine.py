"""The machine of a worker: single events and their actions."""

import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from sharecons import Reject, RetryPolicy, RetryTopic
from sharecons.record import ACCEPT, REJECT, RELEASE
from sharecons.worker.machine.actions import (
    Acknowledge,
    AttemptFailed,
    CancelCall,
    Copy,
    GivenUp,
    HandlersCancelled,
    LocksLost,
    OutcomeDecided,
    Stop,
    Warn,
)
from sharecons.worker.machine.item import Call, WorkItem
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.machine.topic_settings import WITHOUT_HANDLER
from sharecons.worker.machine.waits import STALLS, STOPS
from sharecons.worker.outcomes import (
    Accepted,
    DeadLettered,
    Moved,
    Rejected,
    Released,
    RetryAfter,
)
from sharecons.worker.retry_topics import RetryTopics
from tests.worker.machine.simulated_worker import (
    FakeRecord,
    SimulatedWorker,
    retry_record,
)

ERROR = TimeoutError("slow")
POLICY = RetryPolicy(max_attempts=2, initial=10.0, jitter=0.0)
TOPICS = RetryTopics([RetryTopic("later", 20.0)])


def new_worker(**options: Any) -> SimulatedWorker:
    return SimulatedWorker(HandlerSettings(**{"retry": POLICY, **options}))


def started(worker: SimulatedWorker, offset: int = 0, **options: Any) -> WorkItem:
    """Deliver a record and call its handler."""
    item = worker.deliver(offset, **options)
    worker.start_calls()
    worker.begin(worker.assigned[-1])
    return item


def call_of(item: WorkItem) -> Call:
    assert item.call is not None
    return item.call


def results(worker: SimulatedWorker, item: WorkItem, error: Exception | None) -> Any:
    return worker.machine.on_results(call_of(item), [error], worker.now, 0.5)


def test_record_whose_handler_returns_is_accepted() -> None:
    worker = new_worker()
    item = started(worker)

    assert results(worker, item, None) == [
        OutcomeDecided(item, Accepted(), 1, 0.5),
        Acknowledge(item, ACCEPT),
    ]
    assert 1 == worker.machine.counts.accepted


@pytest.mark.slow("20,000 records")
@pytest.mark.parametrize("max_attempts", [1, 5])
def test_end_releases_many_records_of_one_key_in_linear_time(max_attempts: int) -> None:
    """In quadratic time, this takes more than ten seconds, and locks are lost."""
    policy = RetryPolicy(max_attempts=max_attempts)
    machine = new_worker(retry=policy, key_order=True).machine
    records = [FakeRecord(offset, key=b"k") for offset in range(20_000)]
    items = machine.new_items(records, 0.0, 0.0)
    machine.on_taken(items, 0.0)
    started = time.perf_counter()

    machine.stop()
    machine.release_held(machine.scheduler.held)

    assert time.perf_counter() - started < 2.0
    assert (0, len(items)) == (machine.scheduler.held_count, machine.counts.released)


def test_record_whose_handler_raises_is_tried_again_then_rejected() -> None:
    worker = new_worker()
    item = started(worker)
    retry = RetryAfter(10.0, 2, ERROR)
    assert results(worker, item, ERROR) == [
        AttemptFailed(item, 1, ERROR, retry, 0.5),
        OutcomeDecided(item, retry, 1, 0.5, ERROR),
    ]
    worker.running.clear()
    assert worker.machine.next_call(9.9) is None

    worker.now = 10.0
    worker.start_calls()
    worker.begin(worker.assigned[-1])
    rejected = Rejected("failed after 2 attempts: TimeoutError: slow", ERROR)

    assert results(worker, item, ERROR) == [
        AttemptFailed(item, 2, ERROR, rejected, 0.5),
        OutcomeDecided(item, rejected, 2, 0.5, ERROR),
        GivenUp(item, rejected),
        Acknowledge(item, REJECT),
    ]


def test_stop_on_error_releases_the_record_and_stops() -> None:
    worker = new_worker(stop_on_error=True)
    item = started(worker)

    actions = results(worker, item, ERROR)

    assert Stop(ERROR) in actions
    assert Acknowledge(item, RELEASE) in actions


def test_handler_is_cancelled_once_all_records_of_its_batch_are_lost() -> None:
    worker = new_worker(max_records=2)
    first, second = worker.deliver(0), worker.deliver(1)
    worker.start_calls()
    worker.begin(worker.assigned[-1])

    lost = worker.machine.on_locks_lost([first], "")
    assert LocksLost([first], 1, "") == lost[0]
    assert not any(isinstance(each, CancelCall) for each in lost)
    (cancel,) = [
        each
        for each in worker.machine.on_locks_lost([first, second], "")
        if isinstance(each, CancelCall)
    ]

    assert call_of(first) is cancel.call
    assert cancel.reason.startswith("LockLost: ")


def test_record_lost_before_its_call_begins_is_not_handled() -> None:
    worker = new_worker()
    item = worker.deliver(0)
    worker.start_calls()

    worker.lose([item])

    assert not worker.begin(worker.assigned[-1])
    again = started(worker, delivery_count=2)
    assert [again] == call_of(again).items


def test_record_delivered_again_waits_for_its_cancelled_handler() -> None:
    worker = new_worker()
    item = started(worker)

    again = worker.deliver(0, delivery_count=2)

    assert ["lost"] == item.record.ends
    assert [call_of(item)] == worker.cancelled
    worker.start_calls()
    assert not worker.begin(worker.assigned[-1])
    worker.end_cancelled(call_of(item))
    worker.now += 0.05
    worker.start_calls()
    assert worker.begin(worker.assigned[-1])
    assert again.is_running


def test_record_held_for_too_long_fails_while_its_lock_is_held() -> None:
    worker = new_worker(max_lock_time=60.0, retry_topics=TOPICS)
    item = started(worker)

    actions = worker.machine.on_held_too_long(item, 60.0)

    kinds = [type(action) for action in actions]
    assert [AttemptFailed, OutcomeDecided, Copy, CancelCall] == kinds
    assert "held for max_lock_time (60 s)" in str(item.error)


def test_record_that_is_not_deserialized_has_no_call() -> None:
    worker = new_worker(on_deserialization_error="reject")
    item = started(worker)
    rejected = Rejected("TimeoutError: slow", ERROR)

    actions = worker.machine.on_not_deserialized(call_of(item), [(item, ERROR)], 0.0)

    assert actions[0] == OutcomeDecided(item, rejected, 1, None, ERROR)
    assert [] == call_of(item).items


def test_decision_is_reported_without_an_error() -> None:
    worker = new_worker()
    item = started(worker)

    (decided, _, _) = results(worker, item, Reject("old"))

    assert OutcomeDecided(item, Rejected("old"), 1, 0.5) == decided


def test_outcome_has_the_chance_that_middleware_has_seen() -> None:
    worker = new_worker(retry=RetryPolicy(initial=10.0, jitter=1.0))
    item = started(worker)

    actions = worker.machine.on_results(
        call_of(item), [ERROR], worker.now, 0.5, {item: 0.75}
    )

    assert OutcomeDecided(item, RetryAfter(15.0, 2, ERROR), 1, 0.5, ERROR) in actions


def test_release_on_the_last_delivery_is_reported_as_a_dead_letter() -> None:
    worker = new_worker(dead_letter="orders.dead")
    worker.machine.window.window = 0
    item = started(worker)
    item.record.delivery_count = 5

    decided = results(worker, item, ERROR)[1]

    reason = f"delivered for the last time: {STALLS}"
    assert DeadLettered(reason, ERROR, "last_delivery") == decided.outcome


def test_cancelled_record_is_reported_at_the_end_but_not_one_without_a_call() -> None:
    worker = new_worker()
    item = started(worker)
    other = worker.deliver(1)
    worker.machine.end()

    actions = worker.machine.release_held([item, other])

    assert [OutcomeDecided(item, Released(STOPS), 1)] == [
        each for each in actions if isinstance(each, OutcomeDecided)
    ]


def test_copy_that_fails_is_repeated_after_growing_delays() -> None:
    worker = new_worker(dead_letter="dead", retry=RetryPolicy(max_attempts=1))
    item = started(worker)
    worker.end_call(call_of(item), [ERROR])
    delays = []

    for _ in range(7):
        worker.fail_copy(worker.copies[0])
        delays.append(worker.copies[0].after)

    assert [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0] == delays
    worker.confirm(worker.copies[0])
    assert [ACCEPT] == item.record.ends
    assert 1 == worker.machine.counts.dead_lettered


def test_record_that_is_too_large_for_its_retry_topic_is_released_with_advice() -> None:
    worker = new_worker(retry_topics=TOPICS)
    worker.machine.window.window = 0
    item = started(worker)
    worker.end_call(call_of(item), [ERROR])
    (copy,) = worker.copies

    *_, acknowledged, warning = worker.machine.on_copy_failed(
        copy, 0.0, is_too_large=True
    )

    assert Acknowledge(item, RELEASE) == acknowledged
    assert isinstance(warning, Warn)
    assert "later takes no record of this size" == warning.fields["reason"]
    assert "raise max.message.bytes of the retry topic" == warning.fields["advice"]


@pytest.mark.parametrize(
    ("options", "window", "advice"),
    [
        ({}, 0, "with retry_topics it would wait in one of them"),
        ({"stop_on_error": True}, 2000, None),
        ({"key_order": True, "max_lock_time": 5.0}, 0, "raise max_lock_time"),
        ({"max_lock_time": 5.0}, 0, "with retry_topics it would wait in one of them"),
    ],
)
def test_warning_of_a_release_advises_only_what_helps(
    options: Any, window: int, advice: str | None
) -> None:
    worker = new_worker(**options)
    worker.machine.window.window = window
    item = started(worker, key=b"key")

    (warning,) = [x for x in results(worker, item, ERROR) if isinstance(x, Warn)]

    assert advice == warning.fields.get("advice")


def test_releases_are_logged_once_for_each_kind_of_reason() -> None:
    worker = new_worker()
    worker.machine.window.window = 0
    items = [started(worker, offset) for offset in range(3)]

    warnings = [
        action
        for item in items
        for action in results(worker, item, ERROR)
        if isinstance(action, Warn)
    ]

    assert [STALLS] == [warning.fields["reason"] for warning in warnings]


def test_lock_lost_on_the_last_delivery_becomes_a_dead_letter() -> None:
    worker = new_worker(dead_letter="dead", retry=RetryPolicy(max_attempts=9))
    worker.machine.decisions.delivery_limit = 2
    item = started(worker, delivery_count=2)

    worker.lose([item])

    (copy,) = worker.copies
    reason = "its lock was lost on its last delivery"
    assert DeadLettered(reason, cause="last_delivery") == copy.outcome
    worker.confirm(copy)
    assert ["lost"] == item.record.ends, "nothing is acknowledged"


def test_lost_lock_ends_the_copy_of_a_record_that_is_delivered_again() -> None:
    worker = new_worker(dead_letter="dead", retry=RetryPolicy(max_attempts=1))
    item = started(worker)
    worker.end_call(call_of(item), [ERROR])
    (copy,) = worker.copies

    worker.lose([item])

    assert not worker.machine.is_current(copy)
    assert not worker.machine.on_copied(copy)
    assert not worker.machine.on_copy_failed(copy, 0.0, is_too_large=False)


def test_end_releases_held_records_and_keeps_dead_letters_of_last_deliveries() -> None:
    policy = RetryPolicy(max_attempts=9, initial=10.0)
    worker = new_worker(dead_letter="dead", retry=policy)
    worker.machine.decisions.delivery_limit = 2
    last = started(worker, 0, delivery_count=2)
    worker.now += 10.0
    running, ready = started(worker, 1), worker.deliver(2)
    worker.lose([last])
    worker.copies.clear()

    actions = worker.machine.end()

    assert HandlersCancelled([running]) == actions[0]
    (copy,) = actions[1:]
    assert isinstance(copy, Copy)
    assert last is copy.item
    worker.do(worker.machine.release_held(worker.machine.scheduler.held))
    assert [RELEASE] == running.record.ends == ready.record.ends


def test_records_taken_after_the_end_are_released() -> None:
    worker = new_worker()
    worker.end()

    assert [RELEASE] == worker.deliver(0).record.ends


def test_records_of_a_lane_are_released_from_the_last_one() -> None:
    worker = new_worker(key_order=True)
    items = [worker.deliver(offset, key=b"key") for offset in range(3)]

    released = worker.machine.release_held(items[:1])

    assert [Acknowledge(item, RELEASE) for item in reversed(items)] == released


@pytest.mark.parametrize(("count", "behind"), [(1, 4), (4, 1)])
def test_record_without_another_call_stays_if_one_before_it_is_released(
    count: int, behind: int
) -> None:
    policy = RetryPolicy(max_attempts=6)
    worker = new_worker(key_order=True, dead_letter="dead", retry=policy)
    first = started(worker, key=b"key", delivery_count=count)
    stays = worker.deliver(1, key=b"key", delivery_count=behind)

    worker.machine.stop()
    worker.do(results(worker, first, ERROR))

    assert not stays.has_outcome


def test_record_of_a_key_that_is_copied_at_the_end_is_copied_once() -> None:
    worker = new_worker(
        key_order=True, dead_letter="dead", retry=RetryPolicy(max_attempts=6)
    )
    first = worker.deliver(0, key=b"key")
    copied = worker.deliver(1, key=b"key", delivery_count=4)

    copy, released = worker.machine.release_held([first, copied])

    assert isinstance(copy, Copy)
    assert copied is copy.item
    assert Acknowledge(first, RELEASE) == released


def test_record_that_is_copied_is_not_released_with_another_one_of_its_key() -> None:
    settings = HandlerSettings(
        retry=POLICY, retry_topics=TOPICS, dead_letter="dead", key_order=True
    )
    worker = SimulatedWorker(
        settings, {"refunds": HandlerSettings(retry_topics=TOPICS)}
    )
    first = started(worker, key=b"key")
    copied = worker.deliver(1, topic="later", key=b"key")
    (copy,) = worker.copies

    worker.machine.stop()
    worker.do(results(worker, first, ERROR))

    assert [RELEASE] == first.record.ends
    assert [] == copied.record.ends
    worker.confirm(copy)
    assert [ACCEPT] == copied.record.ends


def test_record_that_holds_up_its_partition_is_logged_once() -> None:
    worker = new_worker()
    worker.machine.window.window = 10
    for offset in range(9):
        worker.deliver(offset)

    (warning,) = worker.machine.on_assignment(frozenset(), 5.0)

    assert isinstance(warning, Warn)
    fields = {"topic": "orders", "partition": 0, "offset": 0, "delivery_count": 1}
    assert {**fields, "seconds": 5} == warning.fields
    assert [] == worker.machine.on_assignment(frozenset(), 6.0)


def test_copy_that_holds_up_its_retry_topic_is_logged_with_its_origin() -> None:
    worker = new_worker(retry_topics=TOPICS)
    worker.machine.window.window = 10
    worker.take([retry_record(offset, 90.0, 0.0) for offset in range(3, 12)])

    (warning,) = worker.machine.on_assignment(frozenset(), 5.0)

    assert isinstance(warning, Warn)
    assert ("later", 3) == (warning.fields["topic"], warning.fields["offset"])
    assert "orders-0@3" == warning.fields["origin"]


@pytest.mark.parametrize(("due", "attempt"), [(90.0, 2), (0.0, 4)])
def test_deliveries_of_a_copy_that_is_not_due_were_no_attempts(
    due: float, attempt: int
) -> None:
    worker = new_worker(retry_topics=TOPICS)
    record = retry_record(3, due, 0.0)
    record.delivery_count = 3

    (item,) = worker.take([record])

    assert attempt == item.attempt


def test_copy_whose_attempts_are_not_known_is_given_up_on_its_last_delivery() -> None:
    """Other programs can write copies as well: without the header, or with 0."""
    worker = new_worker(retry_topics=TOPICS, dead_letter="dead")
    record = retry_record(3, 90.0, 0.0)
    record.headers = tuple(
        each for each in record.headers if not each[0].endswith("attempts")
    )
    record.delivery_count = 5

    (item,) = worker.take([record])

    assert 5 == item.attempt
    assert worker.copies, "it has a dead letter"
    assert [] == worker.running


def steps_of(function: Callable[[], object]) -> int:
    """Return how many functions are called, Python's and built-in ones."""
    count = 0

    def on_event(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(on_event)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("topics", [RetryTopics([]), TOPICS])
def test_stop_with_many_waiting_records_takes_linear_time(topics: RetryTopics) -> None:
    def steps(count: int) -> int:
        settings = HandlerSettings(retry=POLICY, retry_topics=topics)
        worker = SimulatedWorker(settings, concurrency=count)
        worker.machine.window.window = 100 * count
        for offset in range(count):
            item = started(worker, offset)
            worker.machine.on_results(call_of(item), [ERROR], 0.0, 0.1)
            worker.running.clear()
        assert count == worker.machine.scheduler.waiting_count
        worker.machine.stop()
        waiting = worker.machine.scheduler.waiting

        def stop() -> None:
            for action in worker.machine.on_time(waiting, 1.0):
                if isinstance(action, Copy):
                    worker.machine.on_copied(action)

        found = steps_of(stop)
        assert not worker.machine.scheduler.held_count
        return found

    assert steps(800) < 2.2 * steps(400)


def test_lost_locks_of_a_large_batch_take_linear_time() -> None:
    def steps(count: int) -> int:
        worker = new_worker(max_records=count)
        items = [worker.deliver(offset) for offset in range(count)]
        worker.start_calls()
        worker.begin(worker.assigned[-1])
        return steps_of(lambda: worker.machine.on_locks_lost(items, ""))

    assert steps(800) < 2.2 * steps(400)


def test_waiting_record_moves_once_the_rate_rises() -> None:
    worker = new_worker(retry_topics=TOPICS)
    item = started(worker)
    worker.end_call(call_of(item), [ERROR])
    assert not worker.machine.on_time([item], 1.0)

    for offset in range(1, 2000):
        worker.deliver(offset)
    decided, copy = worker.machine.on_time([item], 2.0)

    moved = Moved("later", 8.0, 2, ERROR)
    assert OutcomeDecided(item, moved, 2) == decided
    assert Copy(item, moved) == copy


def test_released_record_has_the_reason_of_its_wait() -> None:
    worker = new_worker()
    worker.machine.window.window = 0
    item = started(worker)

    decided = results(worker, item, ERROR)[1]

    assert OutcomeDecided(item, Released(STALLS, ERROR), 1, 0.5, ERROR) == decided


@pytest.mark.parametrize("dead_letter", ["dead", None])
def test_record_of_a_shared_retry_topic_without_an_origin_has_no_call(
    dead_letter: str | None,
) -> None:
    """It must not reach the wrong handler. It fails as if it had no attempts left."""
    refunds = HandlerSettings(retry_topics=TOPICS, dead_letter=dead_letter)
    settings = HandlerSettings(retry_topics=TOPICS)
    worker = SimulatedWorker(settings, {"refunds": refunds})

    item = worker.deliver(0, topic="later")

    assert item.has_outcome
    assert worker.machine.next_call(0.0) is None
    if dead_letter is None:
        assert [REJECT] == item.record.ends
    else:
        (copy,) = worker.copies
        assert DeadLettered(WITHOUT_HANDLER, cause="no_handler") == copy.outcome
        assert refunds is copy.item.settings
