"""The outcomes that a worker decides: errors, deliveries, leases, stopping."""

from dataclasses import dataclass
from typing import Any

import pytest

from sharecons import DeadLetter, DeadLetterQueue, Reject, RetryPolicy, RetryTopic
from sharecons.worker.decisions import Decisions
from sharecons.worker.options import WorkerOptions
from sharecons.worker.outcomes import (
    DeadLettered,
    Rejected,
    Released,
    RetryAfter,
    Spilled,
)
from sharecons.worker.positions import partition_of
from sharecons.worker.retry_topics import RetryTopics
from sharecons.worker.scheduler import ItemState, Scheduler, WorkItem
from sharecons.worker.window import WindowTracker

ERROR = TimeoutError("slow")


@dataclass
class FakeRecord:
    """The attributes of a record that a decision reads."""

    topic: str = "orders"
    partition: int = 0
    offset: int = 7
    delivery_count: int = 1
    lock_remaining: float = 30.0


def decisions(*, renews: bool = True, **options: Any) -> Decisions:
    window = WindowTracker()
    window.on_delivered(partition_of(FakeRecord()), 7, now=0.0)
    defaults: dict[str, Any] = {
        "concurrency": 1,
        "max_bytes": 1000,
        "retry": RetryPolicy(max_attempts=3, initial=10.0, jitter=0.0),
        "retry_topics": RetryTopics([]),
        "dead_letter": DeadLetterQueue("dead"),
        "undeserializable": "dead_letter",
        "key_order": False,
        "max_lease": 100.0,
        "shutdown_grace": 30.0,
        "stop_on_error": False,
    }
    return Decisions(WorkerOptions(**defaults | options), window, lambda: renews)


def running(delivery_count: int = 1, *, lease_end: float = 100.0) -> WorkItem:
    record = FakeRecord(delivery_count=delivery_count)
    item = WorkItem(record, 1, attempt=delivery_count, lease_end=lease_end)
    item.state = ItemState.RUNNING
    return item


def test_failed_record_is_tried_again_until_its_last_attempt() -> None:
    decide = decisions().on_error

    assert RetryAfter(10.0, 2, ERROR) == decide(running(1), ERROR, 0.0, 0.5)
    assert RetryAfter(20.0, 3, ERROR) == decide(running(2), ERROR, 0.0, 0.5)
    reason = "failed after 3 attempts: TimeoutError: slow"
    assert DeadLettered(reason, ERROR) == decide(running(3), ERROR, 0.0, 0.5)


def test_decision_in_an_exception_group_counts_as_the_decision() -> None:
    decide = decisions().on_error
    group = ExceptionGroup("tasks", [ExceptionGroup("inner", [Reject("old")])])

    assert Rejected("old") == decide(running(), group, 0.0, 0.5)
    two = ExceptionGroup("tasks", [DeadLetter("bad"), ERROR])
    assert RetryAfter(10.0, 2, two) == decide(running(), two, 0.0, 0.5)


def test_decision_in_an_exception_group_does_not_stop_on_error() -> None:
    decide = decisions(stop_on_error=True).on_error

    assert Released("its handler raised", ERROR) == decide(running(), ERROR, 0.0, 0.5)
    group = ExceptionGroup("tasks", [DeadLetter("bad")])
    assert DeadLettered("bad") == decide(running(), group, 0.0, 0.5)


@pytest.mark.parametrize(
    ("policy", "queue", "expected"),
    [
        ("dead_letter", DeadLetterQueue("dead"), DeadLettered),
        ("dead_letter", None, Rejected),
        ("reject", DeadLetterQueue("dead"), Rejected),
        ("release", DeadLetterQueue("dead"), Released),
        ("release", None, Released),
    ],
)
def test_undeserializable_record_is_never_accepted(policy, queue, expected) -> None:
    decide = decisions(undeserializable=policy, dead_letter=queue)

    found = decide.on_undeserializable(ERROR)

    assert expected("TimeoutError: slow", ERROR) == found


def test_release_on_the_last_delivery_becomes_a_dead_letter() -> None:
    decide = decisions()
    released = Released("the worker stops", ERROR)

    assert released == decide.instead_of_release(running(4), released)
    assert DeadLettered(
        "delivered for the last time: the worker stops", ERROR
    ) == decide.instead_of_release(running(5), released)
    decide.delivery_limit = 8
    assert released == decide.instead_of_release(running(5), released)


def test_release_on_the_last_delivery_stays_one_without_a_dead_letter_queue() -> None:
    released = Released("the worker stops")

    found = decisions(dead_letter=None).instead_of_release(running(5), released)

    assert released == found


def test_record_delivered_more_often_than_its_attempts_is_not_processed() -> None:
    reason = "delivered 4 times without an outcome; max_attempts is 3"

    assert decisions().before_call(running(3)) is None
    assert DeadLettered(reason) == decisions().before_call(running(4))
    assert Rejected(reason) == decisions(dead_letter=None).before_call(running(4))


def test_attempts_of_every_exception_are_allowed_before_a_call() -> None:
    policy = RetryPolicy(
        max_attempts=1, by_exception={OSError: RetryPolicy(max_attempts=9)}
    )

    assert decisions(retry=policy).before_call(running(9)) is None
    assert decisions(retry=policy).before_call(running(10)) is not None


def test_wait_that_exceeds_the_lease_is_elsewhere() -> None:
    topics = RetryTopics([RetryTopic("later", 20.0)])
    item = running(lease_end=9.0)

    assert Spilled("later", 10.0, 2, ERROR) == decisions(retry_topics=topics).on_error(
        item, ERROR, 0.0, 0.5
    )
    assert Released(
        "its lock or max_lease ends before its next attempt", ERROR
    ) == decisions().on_error(item, ERROR, 0.0, 0.5)
    assert RetryAfter(10.0, 2, ERROR) == decisions().on_error(
        running(lease_end=11.0), ERROR, 0.0, 0.5
    )


def test_wait_that_exceeds_a_lock_without_renewals_is_elsewhere() -> None:
    decide = decisions(renews=False)
    item = running()
    assert RetryAfter(10.0, 2, ERROR) == decide.on_error(item, ERROR, 0.0, 0.5)
    item.record.lock_remaining = 9.0
    assert isinstance(decide.on_error(item, ERROR, 0.0, 0.5), Released)


def test_waiting_record_is_released_when_the_worker_stops() -> None:
    decide = decisions()
    scheduler = Scheduler(concurrency=1, max_bytes=1000)
    item = running()
    item.state = ItemState.READY
    scheduler.add(item)
    scheduler.start_next(0.0)
    scheduler.retry(item, due=10.0)
    assert RetryAfter(6.0, 2) == decide.continue_wait(item, 4.0)

    decide.is_stopping = True

    assert Released("the worker stops") == decide.continue_wait(item, 4.0)
