"""Items of delivered records: what is known of a record before its first call."""

from collections.abc import Iterable
from typing import Any, final

from sharecons.worker.machine.handler_queue import HandlerQueue
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.scheduler import Scheduler
from sharecons.worker.machine.topic_settings import TopicSettings
from sharecons.worker.meters import Meters
from sharecons.worker.topic_meter import TopicMeter

__all__ = ["Deliveries"]


@final
class Deliveries:
    """Makes the items of one worker.

    The first attempt has the number of the delivery: attempts in earlier deliveries are
    not known otherwise. In a retry topic, attempts at the source are added. A record
    of a retry topic with other headers than the worker's is processed immediately.

    Args:
        topics: find the handlers of records.
        scheduler: has the queues of the handlers.
        meters: of the worker; None without metrics.

    Attributes:
        without_handler: new items that no handler can process. They have the settings
            of a handler that shares their retry topic.
    """

    def __init__(
        self, topics: TopicSettings, scheduler: Scheduler, meters: Meters | None = None
    ) -> None:
        self._topics = topics
        self._queue_of = scheduler.queue_of
        self._meters = meters
        self._by_topic = {
            topic: (scheduler.queue_of(settings), _meter_of(meters, topic))
            for topic, settings in topics.by_topic.items()
        }
        self.without_handler: list[WorkItem] = []

    def new_items(
        self, records: Iterable[Any], now: float, wall_clock: float
    ) -> list[WorkItem]:
        """Return the items of delivered records, which have bytes as key and value.

        Args:
            now: on the worker's clock.
            wall_clock: seconds since the epoch; due times are written on this clock.
        """
        by_topic = self._by_topic
        items: list[WorkItem] = []
        for record in records:
            found = by_topic.get(record.topic)
            if found is None:
                items.append(self._of_retry_topic(record, now, wall_clock))
            else:
                items.append(_new_item(record, found[0], now, found[1]))
        return items

    def take_without_handler(self) -> list[WorkItem]:
        """Return `without_handler`, and forget them."""
        items, self.without_handler = self.without_handler, []
        return items

    def _of_retry_topic(self, record: Any, now: float, wall_clock: float) -> WorkItem:
        settings, state = self._topics.find(record)
        meter = _meter_of(self._meters, record.topic)
        if settings is None:
            substitute = self._topics.substitute(record.topic)
            item = _new_item(record, self._queue_of(substitute), now, meter)
            self.without_handler.append(item)
            return item
        if state is None:
            return _new_item(record, self._queue_of(settings), now, meter)
        # Clocks of machines differ, and any producer can write a due time.
        longest = self._topics.longest_delay(record.topic)
        wait = min(max(0.0, state.due / 1000 - wall_clock), longest)
        item = WorkItem(
            record,
            _size_of(record),
            settings=settings,
            attempt=(state.origin.attempts or 0) + record.delivery_count,
            due=now + wait,
            origin=state.origin,
            lease_end=now + settings.max_lock_time,
            meter=meter,
        )
        item.queue = self._queue_of(settings)
        return item


def _meter_of(meters: Meters | None, topic: str) -> TopicMeter | None:
    return None if meters is None else meters.of_topic(topic)


def _new_item(
    record: Any, queue: HandlerQueue, now: float, meter: TopicMeter | None
) -> WorkItem:
    settings = queue.settings
    item = WorkItem(
        record,
        _size_of(record),
        settings=settings,
        lane=record.key if settings.key_order else None,
        attempt=record.delivery_count,
        lease_end=now + settings.max_lock_time,
        meter=meter,
    )
    item.queue = queue
    return item


def _size_of(record: Any) -> int:
    size = len(record.key or b"") + len(record.value or b"")
    if record.headers:
        size += sum(len(name) + len(value or b"") for name, value in record.headers)
    return size
