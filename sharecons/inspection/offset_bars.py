"""Bars that show the offsets of partitions, as characters.

All bars have the same scale, in offsets from each partition's own start offset, so that
partitions compare. The scale covers the longest partition, from its start offset to its
log's end. A single unsettled record stays visible at any scale, as thousands of others
can wait for it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.group_state.group_states import PartitionState
from sharecons.group_state.offset_states import (
    OffsetRange,
    OffsetStatus,
)
from sharecons.inspection.inspect import GroupInspection

__all__ = [
    "LEGEND",
    "STYLES",
    "WINDOW_END",
    "BarSegment",
    "OffsetBar",
    "StatusStyle",
    "cells_of",
    "has_one_delivery_left",
    "has_signs",
    "offset_bars_of",
    "sign_of",
    "style_of",
]


class StatusStyle(NamedTuple):
    """The style of a status: a colour, and signs for text with and without Unicode.

    A terminal has these colours in its theme, readable on its background.
    The signs show the status without them.
    """

    colour: str
    sign: str
    plain: str
    label: str


STYLES: Final[Mapping[OffsetStatus, StatusStyle]] = {
    OffsetStatus.ACKNOWLEDGED: StatusStyle("blue", "█", "=", "acknowledged"),
    OffsetStatus.ARCHIVED: StatusStyle("dim", "▒", "x", "archived"),
    OffsetStatus.ARCHIVING: StatusStyle(
        "cyan", "▓", "a", "archiving: writing a dead letter"
    ),
    OffsetStatus.UNKNOWN: StatusStyle(
        "magenta", "?", "?", "unknown state of a newer broker"
    ),
    OffsetStatus.OPEN: StatusStyle("bold magenta", "◆", "o", "available or locked"),
    OffsetStatus.ABOVE: StatusStyle(
        "dim", "·", ".", "above: locked first time, or waiting"
    ),
    OffsetStatus.REMOVED: StatusStyle("red", "!", "!", "removed by retention"),
    OffsetStatus.NO_RECORD: StatusStyle(
        "dim", "-", "-", "no record: aborted, a marker, or compacted"
    ),
}

LEGEND: Final = tuple(STYLES)

WINDOW_END: Final = StatusStyle("bold", "┊", "|", "the window is full here")
"""The style of the cell at which the window ends, if its offsets are `ABOVE`."""

_LAST_DELIVERY: Final = "bold red"
"""The colour of an open offset that has one delivery left."""

# A cell shows the first of these statuses that it contains.
_IMPORTANCE: Final = (
    OffsetStatus.OPEN,
    OffsetStatus.REMOVED,
    OffsetStatus.UNKNOWN,
    OffsetStatus.ARCHIVING,
    OffsetStatus.ARCHIVED,
    OffsetStatus.ACKNOWLEDGED,
    OffsetStatus.ABOVE,
    OffsetStatus.NO_RECORD,
)


class BarSegment(NamedTuple):
    """A segment of a bar; its edges are fractions of the width, from 0 to 1."""

    left: float
    right: float
    offset_range: OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetBar:
    """The bar of a partition.

    Attributes:
        span: number of offsets from the left end of the bar to its right end.
        segments: in order; shorter partitions do not fill the bar.
        limit: where the window is full, as a fraction of the width; None if that is
            not on the bar.
    """

    key: TopicPartition
    partition: PartitionState
    span: int
    segments: tuple[BarSegment, ...]
    limit: float | None


def offset_bars_of(group: GroupInspection) -> tuple[OffsetBar, ...]:
    """Return the bars of all readable partitions, on one scale."""
    seen = group.partitions.found
    span = _span(seen.values())
    return tuple(_bar(key, each, span, group) for key, each in seen.items())


def cells_of(bar: OffsetBar, width: int) -> list[OffsetRange | None]:
    """Divide a bar into `width` cells; each has the most important of its ranges."""
    cells: list[OffsetRange | None] = [None] * width
    for segment in bar.segments:
        first = min(int(segment.left * width), width - 1)
        last = max(first, min(width, -int(-segment.right * width // 1)) - 1)
        for index in range(first, last + 1):
            cells[index] = _more_important(cells[index], segment.offset_range)
    return cells


def sign_of(offset_range: OffsetRange, unicode: bool) -> str:
    """Return the character for a range; a digit is its delivery count."""
    if offset_range.status is OffsetStatus.OPEN and offset_range.delivery_count:
        return str(min(9, offset_range.delivery_count))
    style = STYLES[offset_range.status]
    return style.sign if unicode else style.plain


def style_of(offset_range: OffsetRange, delivery_limit: int | None) -> str:
    """Return the colour of a range, which shows whether it has one delivery left."""
    if has_one_delivery_left(offset_range, delivery_limit):
        return _LAST_DELIVERY
    return STYLES[offset_range.status].colour


def has_one_delivery_left(
    offset_range: OffsetRange, delivery_limit: int | None
) -> bool:
    """Return True if the next release or expired lock archives the range."""
    count = offset_range.delivery_count
    return (
        offset_range.status is OffsetStatus.OPEN
        and delivery_limit is not None
        and count is not None
        and count >= delivery_limit - 1
    )


def has_signs(encoding: str) -> bool:
    """Return True if an encoding has all signs, so that no plain ones are needed."""
    signs = "".join(style.sign for style in (*STYLES.values(), WINDOW_END))
    try:
        signs.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _span(seen: Iterable[PartitionState]) -> int:
    return max((sum(s.count for s in each.ranges) for each in seen), default=0) or 1


def _bar(
    key: TopicPartition,
    partition: PartitionState,
    span: int,
    group: GroupInspection,
) -> OffsetBar:
    start = partition.ranges[0].first_offset if partition.ranges else 0
    segments = tuple(
        BarSegment(
            (each.first_offset - start) / span,
            (each.last_offset + 1 - start) / span,
            each,
        )
        for each in partition.ranges
    )
    limit = group.facts.record_locks
    return OffsetBar(
        key=key,
        partition=partition,
        span=span,
        segments=segments,
        limit=limit / span if limit is not None and limit <= span else None,
    )


def _more_important(one: OffsetRange | None, other: OffsetRange) -> OffsetRange:
    if one is None or _sort_key(other) < _sort_key(one):
        return other
    return one


def _sort_key(offset_range: OffsetRange) -> tuple[int, int]:
    return _IMPORTANCE.index(offset_range.status), -(offset_range.delivery_count or 0)
