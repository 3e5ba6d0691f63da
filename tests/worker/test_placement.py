"""Where a failed record waits, and when a batch starts."""

import math

import pytest

from sharecons.worker.outcomes import Released, RetryAfter, Spilled
from sharecons.worker.placement import BatchGate, place_retry
from sharecons.worker.retry_topics import RetryTopic, RetryTopics

ERROR = TimeoutError("slow")
RETRY = RetryAfter(10.0, 2, ERROR)
NONE = RetryTopics([])
TOPICS = RetryTopics([RetryTopic("minute", 60.0), RetryTopic("seconds", 10.0)])


def test_record_that_can_wait_waits_in_place() -> None:
    assert RETRY == place_retry(RETRY, can_wait=True, topics=TOPICS)
    assert RETRY == place_retry(RETRY, can_wait=True, topics=NONE)


def test_record_that_would_stall_its_partition_waits_in_a_topic() -> None:
    found = place_retry(RETRY, can_wait=False, topics=TOPICS)

    assert Spilled("seconds", 10.0, 2, ERROR) == found


def test_record_that_cannot_wait_without_a_retry_topic_is_released() -> None:
    found = place_retry(RETRY, can_wait=False, topics=NONE)

    assert Released("it would stall its partition", ERROR) == found


def test_record_that_would_lose_its_lock_does_not_wait_in_place() -> None:
    found = place_retry(RETRY, is_leased=False, can_wait=True, topics=TOPICS)
    assert Spilled("seconds", 10.0, 2, ERROR) == found
    for topics, key_order in ((NONE, False), (TOPICS, True)):
        found = place_retry(
            RETRY, is_leased=False, can_wait=True, topics=topics, key_order=key_order
        )
        reason = "its lock or max_lease ends before its next attempt"
        assert Released(reason, ERROR) == found


def test_record_with_key_order_waits_in_place() -> None:
    assert RETRY == place_retry(RETRY, can_wait=False, topics=TOPICS, key_order=True)


def test_stopping_worker_holds_no_record() -> None:
    found = place_retry(RETRY, can_wait=True, topics=TOPICS, stopping=True)
    assert Spilled("seconds", 10.0, 2, ERROR) == found
    for topics, key_order in ((NONE, False), (TOPICS, True)):
        found = place_retry(
            RETRY, can_wait=True, topics=topics, key_order=key_order, stopping=True
        )
        assert Released("the worker stops", ERROR) == found


@pytest.mark.parametrize(
    ("delay", "topic"),
    [(0.0, "seconds"), (15.0, "seconds"), (15.1, "minute"), (3600.0, "minute")],
)
def test_topic_for_a_delay_is_the_shortest_that_is_long_enough(
    delay: float, topic: str
) -> None:
    assert topic == TOPICS.topic_for(delay)


def test_batch_starts_when_it_is_full() -> None:
    gate = BatchGate(3, 1.0)

    assert not gate.is_open(0, 0.0)
    assert not gate.is_open(2, 0.0)
    assert gate.is_open(3, 0.5)


def test_batch_starts_when_its_first_record_has_waited() -> None:
    gate = BatchGate(3, 1.0)
    assert math.inf == gate.next_due()
    assert not gate.is_open(1, 5.0)
    assert not gate.is_open(2, 5.9)
    assert 6.0 == gate.next_due()
    assert gate.is_open(2, 6.0)

    gate.on_started()

    assert math.inf == gate.next_due()
    assert not gate.is_open(1, 6.5), "the rest begins to wait"


def test_batch_of_one_record_starts_immediately() -> None:
    assert BatchGate(1, 0.0).is_open(1, 0.0)
