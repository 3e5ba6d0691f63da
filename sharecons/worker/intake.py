"""Items of delivered records: what is known of a record before its first call."""

from typing import Any

from sharecons.worker.machine.item import WorkItem
from sharecons.worker.retry_topics import RetryTopics, read_retry_state

__all__ = ["new_item"]


def new_item(
    record: Any,
    topics: RetryTopics,
    *,
    key_order: bool,
    now: float,
    wall_clock: float,
    max_lease: float,
) -> WorkItem:
    """Return the item of a delivered record.

    The first attempt has the number of the delivery: attempts in earlier deliveries are
    not known otherwise. In a retry topic, attempts at the source are added. A record
    of a retry topic with other headers than the worker's is processed immediately.

    Args:
        record: with bytes as key and value.
        topics: the worker's retry topics, whose headers are trusted.
        key_order: records with one key form a lane.
        now: on the worker's clock.
        wall_clock: seconds since the epoch; due times are written on this clock.
        max_lease: seconds for which the worker holds a record.
    """
    size = _size_of(record)
    state = read_retry_state(record.headers) if record.topic in topics.names else None
    if state is None:
        lane = record.key if key_order else None
        return WorkItem(
            record,
            size,
            lane=lane,
            attempt=record.delivery_count,
            lease_end=now + max_lease,
        )
    # Clocks of machines differ, and any producer can write a due time.
    wait = min(max(0.0, state.due / 1000 - wall_clock), topics.longest_delay)
    return WorkItem(
        record,
        size,
        attempt=(state.origin.attempts or 0) + record.delivery_count,
        due=now + wait,
        origin=state.origin,
        lease_end=now + max_lease,
    )


def _size_of(record: Any) -> int:
    size = len(record.key or b"") + len(record.value or b"")
    if record.headers:
        size += sum(len(name) + len(value or b"") for name, value in record.headers)
    return size
