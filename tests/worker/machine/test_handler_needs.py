"""Which of several handlers need records, and how many."""

from sharecons import RetryTopic
from sharecons.worker.machine.handler_needs import HandlerNeeds
from sharecons.worker.machine.item import Call, WorkItem
from sharecons.worker.machine.scheduler import Scheduler
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.machine.topic_settings import TopicSettings
from sharecons.worker.retry_topics import RetryTopics


class Needs:
    """Two handlers, of the topics "a" and "b"; `a` has two calls at a time."""

    def __init__(self, *, max_bytes: int = 1 << 20, **options: RetryTopics) -> None:
        self.a = HandlerSettings(concurrency=2, **options)
        self.b = HandlerSettings(**options)
        topics = TopicSettings({"a": self.a, "b": self.b}, "billing")
        self.scheduler = Scheduler(topics.handlers, concurrency=10, max_bytes=max_bytes)
        self.needs = HandlerNeeds(self.scheduler, topics)
        self.items: list[WorkItem] = []

    def add(self, settings: HandlerSettings, count: int, size: int = 10) -> None:
        for _ in range(count):
            item = WorkItem("record", size, settings=settings)
            item.queue = self.scheduler.queue_of(settings)
            item.queue.add(item)
            self.items.append(item)

    def start(self) -> list[Call]:
        calls = []
        while (call := self.scheduler.next_call(0.0, False)) is not None:
            calls.append(call)
        return calls

    def end(self, call: Call, seconds: float, now: float = 0.0) -> None:
        """End a call that took `seconds`; its record is accepted."""
        self.needs.on_call_ended(call.queue.settings, seconds, now)
        call.queue.remove(call.items[0])
        call.queue.calls -= 1


def test_idle_handlers_need_the_records_of_the_larger_number_of_calls() -> None:
    needs = Needs()

    assert 10 == needs.needs.update(0.0)
    assert frozenset() == needs.needs.met


def test_topics_of_a_handler_whose_calls_all_have_records_are_met() -> None:
    needs = Needs()
    needs.add(needs.a, 2)

    assert 10 == needs.needs.update(0.0), "of the other handler"
    assert {"a"} == needs.needs.met


def test_handler_needs_records_again_once_a_call_ends() -> None:
    needs = Needs()
    needs.add(needs.a, 2)
    calls = needs.start()
    needs.needs.update(0.0)
    assert {"a"} == needs.needs.met

    needs.end(calls[0], 20.0)
    needs.needs.update(0.0)

    assert frozenset() == needs.needs.met


def test_fast_handler_has_records_ahead_and_needs_more_once_half_are_used() -> None:
    """Two calls of 10 ms process 50 records in a quarter of a second."""
    needs = Needs()
    needs.add(needs.a, 1)
    needs.end(needs.start()[0], 0.01)
    assert 52 == needs.needs.update(0.0)
    needs.add(needs.a, 52)
    needs.needs.update(0.0)
    assert {"a"} == needs.needs.met

    processed = 0
    while needs.needs.met:
        needs.end(needs.start()[0], 0.01)
        processed += 1
        needs.needs.update(0.0)

    assert 25 == processed


def test_fast_handler_that_hangs_needs_fewer_records_ahead() -> None:
    needs = Needs()
    needs.add(needs.a, 1)
    needs.end(needs.start()[0], 0.01)
    needs.add(needs.a, 12)
    needs.start()
    needs.needs.update(0.0)
    assert frozenset() == needs.needs.met

    needs.needs.update(1.0)

    assert {"a"} == needs.needs.met


def test_handler_that_has_its_part_of_the_bytes_is_met() -> None:
    """Records that wait for their next attempt count for the bytes only."""
    needs = Needs(max_bytes=2000)
    needs.add(needs.b, 2, size=500)
    for call in needs.start():
        call.queue.retry(call.items[0], due=100.0)
        call.queue.calls -= 1

    assert 2 == needs.needs.update(0.0), "of the other handler"
    assert {"b"} == needs.needs.met
    needs.scheduler.queue_of(needs.b).remove(needs.items[0])
    needs.needs.update(0.0)
    assert frozenset() == needs.needs.met


def test_handler_without_free_calls_needs_records_for_an_equal_part_of_all() -> None:
    """Its turn comes when a call of the other one ends."""
    needs = Needs()
    needs.add(needs.b, 10)
    needs.start()

    assert 2 == needs.needs.update(0.0)
    assert {"b"} == needs.needs.met


def test_shared_retry_topic_is_fetched_while_one_of_its_handlers_needs_records() -> (
    None
):
    later = RetryTopics([RetryTopic("later", 60.0)])
    needs = Needs(retry_topics=later)
    needs.add(needs.a, 2)
    needs.start()
    needs.needs.update(0.0)
    assert {"a"} == needs.needs.met
