"""Bars that show the offsets of partitions, as text or graphics.

All bars have the same scale, in offsets from each partition's own start offset, so that
partitions compare. The scale covers the longest partition, from its start offset to its
log's end. A single unsettled record stays visible at any scale, as thousands of others
can wait for it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.inspection.diagnosis.findings import Severity
from sharecons.inspection.diagnosis.offset_states import (
    OffsetRange,
    OffsetStatus,
    PartitionInspection,
)
from sharecons.inspection.inspect import GroupInspection

__all__ = [
    "LEGEND",
    "STYLES",
    "BarSegment",
    "OffsetBar",
    "StatusStyle",
    "cells_of",
    "colour_of",
    "offset_bars_of",
]


class StatusStyle(NamedTuple):
    """The style of a status: a colour, and signs for text with and without Unicode.

    Colour-blind people can distinguish blue, orange and grey (Okabe and Ito), which
    also differ in brightness.
    """

    colour: str
    sign: str
    plain: str
    label: str


STYLES: Final[Mapping[OffsetStatus, StatusStyle]] = {
    OffsetStatus.ACKNOWLEDGED: StatusStyle("#0072B2", "█", "=", "acknowledged"),
    OffsetStatus.ARCHIVED: StatusStyle("#8A8A8A", "▒", "x", "archived"),
    OffsetStatus.ARCHIVING: StatusStyle(
        "#56B4E9", "▓", "a", "archiving: writing a dead letter"
    ),
    OffsetStatus.UNKNOWN: StatusStyle(
        "#CC79A7", "?", "?", "unknown state of a newer broker"
    ),
    OffsetStatus.OPEN: StatusStyle("#E69F00", "◆", "o", "available or locked"),
    OffsetStatus.ABOVE: StatusStyle(
        "#E8EEF2", "·", ".", "above: locked first time, or waiting"
    ),
    OffsetStatus.REMOVED: StatusStyle("#000000", "!", "!", "removed by retention"),
}

LEGEND: Final = tuple(STYLES)

_ORANGES: Final = ("#F5C66B", "#E69F00", "#D55E00", "#8C2D04")
"""Colours of released records: the darker, the closer to the delivery limit."""

# A cell shows the first of these statuses that it contains.
_IMPORTANCE: Final = (
    OffsetStatus.OPEN,
    OffsetStatus.REMOVED,
    OffsetStatus.UNKNOWN,
    OffsetStatus.ARCHIVING,
    OffsetStatus.ARCHIVED,
    OffsetStatus.ACKNOWLEDGED,
    OffsetStatus.ABOVE,
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
        text: the worst finding.
    """

    key: TopicPartition
    partition: PartitionInspection
    span: int
    segments: tuple[BarSegment, ...]
    limit: float | None
    severity: Severity
    text: str


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


def colour_of(offset_range: OffsetRange, delivery_limit: int | None) -> str:
    """Return the colour of a range, which for released records shows their count."""
    if (
        offset_range.status is not OffsetStatus.OPEN
        or offset_range.delivery_count is None
    ):
        return STYLES[offset_range.status].colour
    # With one delivery left, it is the darkest.
    last = max(2, (delivery_limit or 5) - 1)
    level = (min(offset_range.delivery_count, last) - 1) / (last - 1)
    return _ORANGES[max(0, int(level * (len(_ORANGES) - 1)))]


def _span(seen: Iterable[PartitionInspection]) -> int:
    return max((sum(s.count for s in each.ranges) for each in seen), default=0) or 1


def _bar(
    key: TopicPartition,
    partition: PartitionInspection,
    span: int,
    group: GroupInspection,
) -> OffsetBar:
    start = partition.start_offset or 0
    segments = tuple(
        BarSegment(
            (each.first_offset - start) / span,
            (each.last_offset + 1 - start) / span,
            each,
        )
        for each in partition.ranges
    )
    limit = group.facts.record_locks
    finding = group.findings[key][0]
    return OffsetBar(
        key=key,
        partition=partition,
        span=span,
        segments=segments,
        limit=limit / span if limit is not None and limit <= span else None,
        severity=finding.severity,
        text=finding.text,
    )


def _more_important(one: OffsetRange | None, other: OffsetRange) -> OffsetRange:
    if one is None or _sort_key(other) < _sort_key(one):
        return other
    return one


def _sort_key(offset_range: OffsetRange) -> tuple[int, int]:
    return _IMPORTANCE.index(offset_range.status), -(offset_range.delivery_count or 0)
