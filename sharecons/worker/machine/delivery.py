"""Makes items of delivered records, before their first call."""

from collections.abc import Iterable
from typing import Any, Final, final

from sharecons.worker.machine.actions import Acknowledge, Action, Warn
from sharecons.worker.machine.handler_queue import HandlerQueue
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.meters import Meters, TopicMeter
from sharecons.worker.machine.scheduler import Scheduler
from sharecons.worker.machine.topic_settings import TopicSettings
from sharecons.worker.positions import item_position
from sharecons.worker.retry_topics import RetryState

__all__ = ["Deliveries"]

SKIPPED: Final = (
    "a copy of another group in a retry topic is accepted without a call, since that "
    "group receives it as well. This is logged once for each retry topic"
)


@final
class Deliveries:
    """Makes the items of one worker.

    The first attempt has the number of the delivery: attempts in earlier deliveries are
    not known otherwise. In a retry topic, attempts at the source are added; a record
    that is not due yet had none in earlier deliveries. A record of a retry topic with
    other headers than a worker's is processed immediately. A copy that another group
    has written is no item: its handler is in that group.

    Args:
        topics: find the handlers of records.
        scheduler: has the queues of the handlers.
        meters: of the worker; None without metrics.
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
        self._without_handler: list[WorkItem] = []
        self._skipped: list[Action] = []
        self._warned_of: set[str] = set()

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
            if found is not None:
                items.append(_new_item(record, found[0], now, found[1]))
            elif (item := self._of_retry_topic(record, now, wall_clock)) is not None:
                items.append(item)
        return items

    def take_skipped(self) -> list[Action]:
        """Return the actions for the copies of other groups, and forget them."""
        actions, self._skipped = self._skipped, []
        return actions

    def take_without_handler(self) -> list[WorkItem]:
        """Return the new items that no handler can process, and forget them.

        They have the settings of a handler that shares their retry topic.
        """
        items, self._without_handler = self._without_handler, []
        return items

    def _of_retry_topic(
        self, record: Any, now: float, wall_clock: float
    ) -> WorkItem | None:
        settings, state = self._topics.find(record)
        if state is not None and state.origin.group != self._topics.group:
            self._skip(record, state)
            return None
        meter = _meter_of(self._meters, record.topic)
        if settings is None:
            substitute = self._topics.substitute(record.topic)
            item = _new_item(record, self._queue_of(substitute), now, meter)
            self._without_handler.append(item)
            return item
        if state is None:
            return _new_item(record, self._queue_of(settings), now, meter)
        # Clocks of machines differ, and any producer can write a due time.
        longest = self._topics.longest_delay(record.topic)
        wait = min(max(0.0, state.due / 1000 - wall_clock), longest)
        before = state.origin.attempts or 0  # 0: not known
        item = WorkItem(
            record,
            _size_of(record),
            settings=settings,
            attempt=before + (1 if wait and before else record.delivery_count),
            due=now + wait,
            origin=state.origin,
            lease_end=now + settings.max_lock_time,
            meter=meter,
        )
        item.queue = self._queue_of(settings)
        return item

    def _skip(self, record: Any, state: RetryState) -> None:
        item = WorkItem(record, 0, origin=state.origin)
        self._skipped.append(Acknowledge(item))
        if record.topic not in self._warned_of:
            self._warned_of.add(record.topic)
            fields = {
                **item_position(item),
                "origin_group": state.origin.group,
                "advice": "give each group retry topics of its own",
            }
            self._skipped.append(Warn(SKIPPED, fields))


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
