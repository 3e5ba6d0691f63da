"""The origins of the records that a worker holds."""

from typing import Any

from sharecons.copies.dead_letter_headers import (
    Origin,
    chain_of,
    read_letter,
    read_redrives,
    with_first_origin,
)
from sharecons.guard import full_type_name
from sharecons.worker.machine.item import WorkItem

__all__ = ["failed_origin", "origin_of_record"]


def origin_of_record(record: Any, group: str) -> Origin:
    """Return the origin of a record that has not failed before: itself.

    A dead letter that a worker consumes keeps its earlier origins, and a count; a
    redriven record its first origin.
    """
    letter = read_letter(record)
    origin = Origin(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        group=group,
        delivery_count=record.delivery_count,
        reason="",
        timestamp=record.timestamp if record.timestamp >= 0 else None,
        redrives=read_redrives(record.headers),
        dead_lettered=1 if letter is None else letter.dead_lettered + 1,
        earlier=None if letter is None else chain_of(letter),
    )
    return with_first_origin(origin, record.headers)


def failed_origin(
    item: WorkItem, *, group: str, attempts: int, reason: str, error: Exception | None
) -> Origin:
    """Return the origin to write with a record that moves to another topic.

    The deliveries of a record in a retry topic are added to its deliveries at the
    source. Without a reason, the reason of its last failure is kept.
    """
    record = item.record
    if item.origin is None:
        origin = origin_of_record(record, group)
    else:
        deliveries = item.origin.delivery_count + record.delivery_count
        origin = item.origin._replace(group=group, delivery_count=deliveries)
    if not reason:
        return origin._replace(attempts=attempts)
    exception = None if error is None else full_type_name(error)
    return origin._replace(reason=reason, attempts=attempts, exception=exception)
