"""The outcomes that a worker decides: errors, deliveries, deserialization."""

from typing import Any

import pytest

from sharecons import DeadLetter, Reject, RetryPolicy
from sharecons.protocol.acknowledge.renewals import RenewalSchedule
from sharecons.worker.machine.decisions import Decisions
from sharecons.worker.machine.item import ItemState, WorkItem
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.machine.waits import Waits
from sharecons.worker.machine.window import WindowTracker
from sharecons.worker.outcomes import DeadLettered, Rejected, Released, RetryAfter
from tests.worker.machine.simulated_worker import FakeRecord

ERROR = TimeoutError("slow")


class Deciding:
    """The decisions about records of a handler with these settings."""

    def __init__(self, **options: Any) -> None:
        defaults: dict[str, Any] = {
            "retry": RetryPolicy(max_attempts=3, initial=10.0, jitter=0.0),
            "dead_letter": "dead",
        }
        self.settings = HandlerSettings(**defaults | options)
        self.window = WindowTracker()
        self.decisions = Decisions(Waits(self.window, RenewalSchedule()))

    def running(self, delivery_count: int = 1) -> WorkItem:
        record = FakeRecord(delivery_count=delivery_count)
        item = WorkItem(record, 1, settings=self.settings, attempt=delivery_count)
        item.state = ItemState.RUNNING
        self.window.add(item, 0.0)
        return item

    def on_error(self, delivery_count: int, error: Exception) -> Any:
        return self.decisions.on_error(self.running(delivery_count), error, 0.0, 0.5)


def test_decision_in_an_exception_group_counts_as_the_decision() -> None:
    worker = Deciding()
    group = ExceptionGroup("tasks", [ExceptionGroup("inner", [Reject("old")])])

    assert Rejected("old") == worker.on_error(1, group)
    two = ExceptionGroup("tasks", [DeadLetter("bad"), ERROR])
    assert RetryAfter(10.0, 2, two) == worker.on_error(1, two)


def test_decision_in_an_exception_group_does_not_stop_on_error() -> None:
    worker = Deciding(stop_on_error=True)

    assert Released("its handler raised", ERROR) == worker.on_error(1, ERROR)
    group = ExceptionGroup("tasks", [DeadLetter("bad")])
    assert DeadLettered("bad", cause="decision") == worker.on_error(1, group)


@pytest.mark.parametrize(
    ("choice", "topic", "expected"),
    [
        ("dead_letter", "dead", DeadLettered),
        ("dead_letter", None, Rejected),
        ("reject", "dead", Rejected),
        ("release", "dead", Released),
        ("release", None, Released),
    ],
)
def test_record_that_is_not_deserialized_is_never_accepted(
    choice: str, topic: str | None, expected: Any
) -> None:
    worker = Deciding(on_deserialization_error=choice, dead_letter=topic)

    found = worker.decisions.on_deserialization_error(worker.running(), ERROR)

    assert expected is type(found)
    assert ("TimeoutError: slow", ERROR) == (found.reason, found.error)
    if expected is DeadLettered:
        assert "deserialization" == found.cause


def test_release_on_the_last_delivery_becomes_a_dead_letter() -> None:
    worker = Deciding()
    decide = worker.decisions.instead_of_release
    released = Released("the worker stops", ERROR)

    assert released == decide(worker.running(3), released)
    reason = "delivered for the last time: the worker stops"
    assert DeadLettered(reason, ERROR, "last_delivery") == decide(
        worker.running(4), released
    )
    worker.decisions.delivery_limit = 8
    assert released == decide(worker.running(5), released)


def test_release_on_the_last_delivery_stays_one_without_a_dead_letter_queue() -> None:
    worker = Deciding(dead_letter=None)
    released = Released("the worker stops")

    found = worker.decisions.instead_of_release(worker.running(5), released)

    assert released == found


def test_record_delivered_more_often_than_its_attempts_is_given_up() -> None:
    reason = "delivered 4 times without an outcome; max_attempts is 3"

    for topic, expected in (
        ("dead", DeadLettered(reason, cause="deliveries")),
        (None, Rejected(reason)),
    ):
        worker = Deciding(dead_letter=topic)
        assert expected == worker.decisions.before_call(worker.running(4))


def test_attempts_of_every_exception_are_allowed_before_a_call() -> None:
    policy = RetryPolicy(
        max_attempts=1, by_exception={OSError: RetryPolicy(max_attempts=9)}
    )

    assert 9 == HandlerSettings(retry=policy).max_attempts
