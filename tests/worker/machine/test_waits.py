"""Where a record waits for its next attempt."""

import pytest

from sharecons.protocol.acknowledge.renewals import RenewalSchedule
from sharecons.worker.machine.handler_queue import HandlerQueue
from sharecons.worker.machine.isolation import LIMIT
from sharecons.worker.machine.item import ItemState, WorkItem
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.machine.waits import (
    HELD_TOO_LONG,
    LOCK_ENDS,
    STALLS,
    STOPS,
    Waits,
)
from sharecons.worker.machine.window import WindowTracker
from sharecons.worker.origins import origin_of_record
from sharecons.worker.outcomes import Moved, Released, RetryAfter
from sharecons.worker.retry_topics import RetryTopic, RetryTopics
from tests.worker.machine.simulated_worker import LOCK, FakeRecord

ERROR = TimeoutError("slow")
RETRY = RetryAfter(10.0, 2, ERROR)
TOPICS = RetryTopics([RetryTopic("minute", 60.0), RetryTopic("seconds", 10.0)])
WITH_TOPICS = HandlerSettings(retry_topics=TOPICS)
MOVED = Moved("seconds", 10.0, 2, ERROR)


class Waiting:
    """Records of one partition, and where they wait at time 0."""

    def __init__(self, *, window: int = 2000, renews: bool = True) -> None:
        self.window = WindowTracker(window)
        self.queue = HandlerQueue(HandlerSettings(), concurrency=1, max_bytes=100)
        self.waits = Waits(self.window, RenewalSchedule(renews=renews))

    def item(
        self,
        settings: HandlerSettings = HandlerSettings(),  # noqa: B008 (frozen)
        *,
        waits: bool = False,
        lane: bytes | None = None,
        lease_end: float = 1000.0,
        lock_deadline: float = LOCK,
    ) -> WorkItem:
        item = WorkItem(
            FakeRecord(lock_deadline=lock_deadline),
            1,
            settings=settings,
            lane=lane,
            lease_end=lease_end,
        )
        item.queue = self.queue
        item.state = ItemState.WAITING if waits else ItemState.RUNNING
        self.window.add(item, 0.0)
        return item

    def decide(self, item: WorkItem) -> RetryAfter | Moved | Released:
        return self.waits.decide(item, RETRY, 0.0)


@pytest.mark.parametrize("settings", [HandlerSettings(), WITH_TOPICS])
def test_record_that_can_wait_waits_in_the_worker(settings: HandlerSettings) -> None:
    worker = Waiting()

    assert RETRY == worker.decide(worker.item(settings))


def test_record_that_would_stall_its_partition_moves_to_a_retry_topic() -> None:
    worker = Waiting(window=0)

    assert MOVED == worker.decide(worker.item(WITH_TOPICS))
    assert MOVED == worker.decide(worker.item(WITH_TOPICS, waits=True))
    assert Released(STALLS, ERROR) == worker.decide(worker.item())


def test_record_moves_while_its_handler_has_nearly_all_of_its_bytes() -> None:
    worker = Waiting()
    worker.queue.add(WorkItem("large", 75))

    assert MOVED == worker.decide(worker.item(WITH_TOPICS))
    assert MOVED == worker.decide(worker.item(WITH_TOPICS, waits=True))
    assert RETRY == worker.decide(worker.item()), "a release uses up a delivery"
    assert RETRY == worker.decide(worker.item(WITH_TOPICS, lane=b"key"))
    (call,) = [worker.queue.next_call(0.0, is_stopping=False)]
    assert call is not None
    worker.queue.start_copy(call.items[0])
    assert RETRY == worker.decide(worker.item(WITH_TOPICS)), "it is leaving"


def test_record_with_key_order_waits_even_if_it_stalls_its_partition() -> None:
    worker = Waiting(window=0)

    assert RETRY == worker.decide(worker.item(WITH_TOPICS, lane=b"key"))


def test_record_of_a_retry_topic_stays_until_it_is_tried() -> None:
    worker = Waiting(window=0)
    item = worker.item(WITH_TOPICS, waits=True)
    item.origin = origin_of_record(item.record, "billing")
    assert RETRY == worker.decide(item)

    item.state = ItemState.RUNNING

    assert MOVED == worker.decide(item), "it has failed again"


def test_suspect_that_waits_for_longer_than_it_can_be_alone_moves() -> None:
    worker = Waiting()

    def decide(item: WorkItem, seconds: float) -> RetryAfter | Moved | Released:
        retry = RetryAfter(seconds, 2, ERROR)
        return worker.waits.decide(item, retry, 0.0, is_suspect=True)

    longer = LIMIT + 0.1
    moved = Moved("seconds", longer, 2, ERROR)
    copy = worker.item(WITH_TOPICS, waits=True)
    copy.origin = origin_of_record(copy.record, "billing")
    for item in (worker.item(WITH_TOPICS), copy):
        assert moved == decide(item, longer)
    for item in (worker.item(), worker.item(WITH_TOPICS, lane=b"key")):
        assert RetryAfter(longer, 2, ERROR) == decide(item, longer)
    for item in (worker.item(WITH_TOPICS), copy):
        assert RETRY == decide(item, LIMIT)


@pytest.mark.parametrize("lane", [None, b"key"])
def test_record_that_fails_near_the_end_of_its_lease_does_not_wait(
    lane: bytes | None,
) -> None:
    worker = Waiting()

    assert RETRY == worker.decide(worker.item(lane=lane, lease_end=10.1))
    found = worker.decide(worker.item(lane=lane, lease_end=10.0))
    assert Released(HELD_TOO_LONG, ERROR) == found
    found = worker.decide(worker.item(WITH_TOPICS, lane=lane, lease_end=10.0))
    assert (MOVED if lane is None else Released(HELD_TOO_LONG, ERROR)) == found


def test_record_that_waits_moves_when_its_lease_has_ended() -> None:
    worker = Waiting()

    assert RETRY == worker.decide(worker.item(waits=True, lease_end=0.1))
    found = worker.decide(worker.item(waits=True, lease_end=0.0))
    assert Released(HELD_TOO_LONG, ERROR) == found


def test_record_that_fails_near_the_end_of_its_lock_waits_only_if_it_is_renewed() -> (
    None
):
    worker = Waiting(renews=False)

    assert RETRY == worker.decide(worker.item(lock_deadline=10.1))
    found = worker.decide(worker.item(lock_deadline=10.0))
    assert Released(LOCK_ENDS, ERROR) == found
    renewing = Waiting()
    assert RETRY == renewing.decide(renewing.item(lock_deadline=10.0))


def test_record_that_waits_without_renewals_moves_shortly_before_its_lock_ends() -> (
    None
):
    worker = Waiting(renews=False)

    item = worker.item(WITH_TOPICS, waits=True, lock_deadline=2.5)
    assert RETRY == worker.decide(item)
    item.record.lock_deadline = 2.4
    assert MOVED == worker.decide(item)
    item.origin = origin_of_record(item.record, "billing")
    assert MOVED == worker.decide(item), "it is written once more"


def test_stopping_worker_holds_no_record() -> None:
    worker = Waiting()
    worker.waits.is_stopping = True

    assert MOVED == worker.decide(worker.item(WITH_TOPICS))
    for item in (worker.item(), worker.item(WITH_TOPICS, lane=b"key")):
        assert Released(STOPS, ERROR) == worker.decide(item)


@pytest.mark.parametrize(
    ("delay", "topic"),
    [(0.0, "seconds"), (15.0, "seconds"), (15.1, "minute"), (3600.0, "minute")],
)
def test_topic_for_a_delay_is_the_shortest_that_is_long_enough(
    delay: float, topic: str
) -> None:
    assert topic == TOPICS.topic_for(delay)
