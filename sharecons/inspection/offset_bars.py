"""Strips: a partition drawn as a line of offsets, for eyes rather than programs.

All strips of a picture have one scale, in offsets from each partition's own start
offset, so that partitions compare. It covers the longest partition, from its start
offset to its log's end. A lone record that is not settled stays visible at any scale:
it may be what a thousand others wait for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.inspection.inspect import GroupInspection
from sharecons.protocol.diagnosis.findings import Severity
from sharecons.protocol.diagnosis.offset_states import (
    OffsetRange,
    OffsetStatus,
    PartitionInspection,
)

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
    """How a standing looks: a colour, and a sign for where there are none.

    Blue, orange and grey are told apart by colour-blind people too (Okabe and Ito), and
    differ in brightness where nothing has a colour.
    """

    colour: str
    sign: str
    plain: str
    label: str


STYLES: Final[Mapping[OffsetStatus, StatusStyle]] = {
    OffsetStatus.ACKNOWLEDGED: StatusStyle("#0072B2", "█", "=", "acknowledged"),
    OffsetStatus.ARCHIVED: StatusStyle("#8A8A8A", "▒", "x", "archived"),
    OffsetStatus.ARCHIVING: StatusStyle(
        "#56B4E9", "▓", "a", "archiving: writes a dead letter"
    ),
    OffsetStatus.UNKNOWN: StatusStyle(
        "#CC79A7", "?", "?", "in a state of a newer broker"
    ),
    OffsetStatus.OPEN: StatusStyle("#E69F00", "◆", "o", "available or locked"),
    OffsetStatus.ABOVE: StatusStyle(
        "#E8EEF2", "·", ".", "above: locked first time, or waiting"
    ),
    OffsetStatus.REMOVED: StatusStyle("#000000", "!", "!", "removed by retention"),
}

LEGEND: Final = tuple(STYLES)

_ORANGES: Final = ("#F5C66B", "#E69F00", "#D55E00", "#8C2D04")
"""Of what was let go: the darker, the closer to its delivery limit."""

# What a cell shows of several standings: the one that others wait for.
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
    """A part of a strip, in parts of its whole width, from 0 to 1."""

    left: float
    right: float
    offset_range: OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetBar:
    """A partition to be drawn.

    Attributes:
        span: offsets from the strip's left end to its right one.
        pieces: ascending; shorter partitions do not fill the strip.
        limit: where the window is full, in parts of the width, if it is on the strip.
    """

    key: TopicPartition
    partition: PartitionInspection
    span: int
    segments: tuple[BarSegment, ...]
    limit: float | None
    severity: Severity
    text: str


def offset_bars_of(group: GroupInspection) -> tuple[OffsetBar, ...]:
    """Lay out the partitions that could be seen, all on one scale."""
    seen = group.partitions.found
    span = _span(seen.values())
    return tuple(_bar(key, each, span, group) for key, each in seen.items())


def cells_of(bar: OffsetBar, width: int) -> list[OffsetRange | None]:
    """Cut a strip into so many cells; each shows the most important of its offsets."""
    cells: list[OffsetRange | None] = [None] * width
    for segment in bar.segments:
        first = min(int(segment.left * width), width - 1)
        last = max(first, min(width, -int(-segment.right * width // 1)) - 1)
        for index in range(first, last + 1):
            cells[index] = _more_important(cells[index], segment.offset_range)
    return cells


def colour_of(offset_range: OffsetRange, delivery_limit: int | None) -> str:
    """Give the colour of a stretch; of what was let go it tells how often."""
    if (
        offset_range.status is not OffsetStatus.OPEN
        or offset_range.delivery_count is None
    ):
        return STYLES[offset_range.status].colour
    # The count after which one delivery is left has the darkest.
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
