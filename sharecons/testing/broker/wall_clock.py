"""The time of day, for the timestamps of records."""

import time

__all__ = ["milliseconds"]


def milliseconds() -> int:
    """Return milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
