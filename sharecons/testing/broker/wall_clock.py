"""The time of day, which records and deletions are stamped with."""

import time

__all__ = ["milliseconds"]


def milliseconds() -> int:
    """Give the milliseconds since the epoch, as records have them."""
    return time.time_ns() // 1_000_000
