"""Items of delivered records: what is known of a record before its first call."""

from typing import Any

from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.retry_topics import read_retry_state

__all__ = ["new_item"]


def new_item(
    record: Any, settings: HandlerSettings, *, now: float, wall_clock: float
) -> WorkItem:
    """Return the item of a delivered record.

    The first attempt has the number of the delivery: attempts in earlier deliveries are
    not known otherwise. In a retry topic, attempts at the source are added. A record
    of a retry topic with other headers than the worker's is processed immediately.

    Args:
        record: with bytes as key and value.
        settings: of its handler; headers are trusted in its retry topics only.
        now: on the worker's clock.
        wall_clock: seconds since the epoch; due times are written on this clock.
    """
    size = _size_of(record)
    lease_end = now + settings.max_lock_time
    topics = settings.retry_topics
    state = read_retry_state(record.headers) if record.topic in topics.names else None
    if state is None:
        return WorkItem(
            record,
            size,
            settings=settings,
            lane=record.key if settings.key_order else None,
            attempt=record.delivery_count,
            lease_end=lease_end,
        )
    # Clocks of machines differ, and any producer can write a due time.
    wait = min(max(0.0, state.due / 1000 - wall_clock), topics.longest_delay)
    return WorkItem(
        record,
        size,
        settings=settings,
        attempt=(state.origin.attempts or 0) + record.delivery_count,
        due=now + wait,
        origin=state.origin,
        lease_end=lease_end,
    )


def _size_of(record: Any) -> int:
    size = len(record.key or b"") + len(record.value or b"")
    if record.headers:
        size += sum(len(name) + len(value or b"") for name, value in record.headers)
    return size
