"""Warnings about a broker's behaviour, with advice."""

from typing import Final

__all__ = ["STALLED", "THROTTLED"]

THROTTLED: Final = (
    "every fetch is throttled by the quota: its records use up a delivery and are not "
    "returned; raise consumer_byte_rate, or lower the batch.size of the producers"
)
STALLED: Final = (
    "a broker returns empty responses without waiting for records: leaving "
    "the group to join again; if this repeats, stop all members of the group together, "
    "so that the broker reloads the group's state"
)
