"""Advice for failed records that are released, which uses up a delivery of each."""

from typing import Final

from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.waits import HELD_TOO_LONG, LOCK_ENDS, STALLS, STOPS

__all__ = ["RELEASED", "advice_for", "too_large"]

RELEASED: Final = (
    "failed record released, which uses up a delivery. This is logged once for each "
    "handler and kind of reason"
)

RETRY_TOPICS: Final = "with retry_topics it would wait in one of them"
RAISE_LOCK_TIME: Final = "raise max_lock_time"
RAISE_LOCK: Final = (
    "raise share.record.lock.duration.ms of the group, or retry after shorter delays"
)
RAISE_SIZE: Final = "raise max.message.bytes of the retry topic"
TOO_LARGE: Final = "takes no record of this size"


def advice_for(item: WorkItem, reason: str) -> str:
    """Return what helps against releases of records like this one; "" if nothing does.

    Retry topics help only if there are none, and the record is allowed to move.
    """
    if reason in (STALLS, STOPS, HELD_TOO_LONG, LOCK_ENDS) and _could_move(item):
        return RETRY_TOPICS
    if reason == HELD_TOO_LONG:
        return RAISE_LOCK_TIME
    if reason == LOCK_ENDS:
        return RAISE_LOCK
    if reason.endswith(TOO_LARGE):
        return RAISE_SIZE
    return ""


def too_large(topic: str) -> str:
    """Return the reason of a record that is too large for its retry topic."""
    return f"{topic} {TOO_LARGE}"


def _could_move(item: WorkItem) -> bool:
    return item.lane is None and not item.settings.retry_topics
