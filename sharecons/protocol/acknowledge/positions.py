"""The positions of records as text, for log lines."""

from collections.abc import Iterable
from typing import Final, NamedTuple

__all__ = ["MAX_POSITIONS", "OffsetRange", "count_offsets", "ranges_text"]

MAX_POSITIONS: Final = 10
"""Positions in one log line."""


class OffsetRange(NamedTuple):
    """Offsets of one partition; both ends are included."""

    topic: str
    partition: int
    first: int
    last: int


def count_offsets(ranges: Iterable[OffsetRange]) -> int:
    """Return the number of offsets in ranges that do not overlap."""
    return sum(each.last - each.first + 1 for each in ranges)


def ranges_text(ranges: Iterable[OffsetRange]) -> str:
    """Return ranges as "orders-0@7-9, orders-2@14", in order, adjacent ones joined.

    The text has at most MAX_POSITIONS ranges, and ends with "..." if there are more.
    """
    joined: list[OffsetRange] = []
    for each in sorted(ranges):
        before = joined[-1] if joined else None
        if before is not None and each[:3] == (*before[:2], before.last + 1):
            joined[-1] = before._replace(last=each.last)
        elif len(joined) == MAX_POSITIONS:
            return ", ".join([*map(_text, joined), "..."])
        else:
            joined.append(each)
    return ", ".join(map(_text, joined))


def _text(offsets: OffsetRange) -> str:
    topic, partition, first, last = offsets
    end = f"-{last}" if last > first else ""
    return f"{topic}-{partition}@{first}{end}"
