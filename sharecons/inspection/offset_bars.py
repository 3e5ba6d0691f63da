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
from sharecons.inspection.inspect import GroupInside
from sharecons.protocol.diagnosis.findings import Severity
from sharecons.protocol.diagnosis.offset_states import (
    PartitionInside,
    Standing,
    Stretch,
)

__all__ = [
    "LEGEND",
    "LOOKS",
    "Looks",
    "Piece",
    "Strip",
    "cells_of",
    "shade",
    "strips_of",
]


class Looks(NamedTuple):
    """How a standing looks: a colour, and a sign for where there are none.

    Blue, orange and grey are told apart by colour-blind people too (Okabe and Ito), and
    differ in brightness where nothing has a colour.
    """

    colour: str
    sign: str
    plain: str
    words: str


LOOKS: Final[Mapping[Standing, Looks]] = {
    Standing.ACKNOWLEDGED: Looks("#0072B2", "█", "=", "acknowledged"),
    Standing.ARCHIVED: Looks("#8A8A8A", "▒", "x", "archived"),
    Standing.ARCHIVING: Looks("#56B4E9", "▓", "a", "archiving: writes a dead letter"),
    Standing.UNKNOWN: Looks("#CC79A7", "?", "?", "in a state of a newer broker"),
    Standing.OPEN: Looks("#E69F00", "◆", "o", "available or locked"),
    Standing.ABOVE: Looks("#E8EEF2", "·", ".", "above: locked first time, or waiting"),
    Standing.REMOVED: Looks("#000000", "!", "!", "removed by retention"),
}

LEGEND: Final = tuple(LOOKS)

_ORANGES: Final = ("#F5C66B", "#E69F00", "#D55E00", "#8C2D04")
"""Of what was let go: the darker, the closer to its delivery limit."""

# What a cell shows of several standings: the one that others wait for.
_IMPORTANCE: Final = (
    Standing.OPEN,
    Standing.REMOVED,
    Standing.UNKNOWN,
    Standing.ARCHIVING,
    Standing.ARCHIVED,
    Standing.ACKNOWLEDGED,
    Standing.ABOVE,
)


class Piece(NamedTuple):
    """A part of a strip, in parts of its whole width, from 0 to 1."""

    left: float
    right: float
    stretch: Stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """A partition to be drawn.

    Attributes:
        span: offsets from the strip's left end to its right one.
        pieces: ascending; shorter partitions do not fill the strip.
        limit: where the window is full, in parts of the width, if it is on the strip.
    """

    key: TopicPartition
    inside: PartitionInside
    span: int
    pieces: tuple[Piece, ...]
    limit: float | None
    severity: Severity
    verdict: str


def strips_of(group: GroupInside) -> tuple[Strip, ...]:
    """Lay out the partitions that could be seen, all on one scale."""
    seen = group.partitions.found
    span = _span(seen.values())
    return tuple(_strip(key, each, span, group) for key, each in seen.items())


def cells_of(strip: Strip, width: int) -> list[Stretch | None]:
    """Cut a strip into so many cells; each shows the most important of its offsets."""
    cells: list[Stretch | None] = [None] * width
    for piece in strip.pieces:
        first = min(int(piece.left * width), width - 1)
        last = max(first, min(width, -int(-piece.right * width // 1)) - 1)
        for index in range(first, last + 1):
            cells[index] = _chief(cells[index], piece.stretch)
    return cells


def shade(stretch: Stretch, delivery_limit: int | None) -> str:
    """Give the colour of a stretch; of what was let go it tells how often."""
    if stretch.standing is not Standing.OPEN or stretch.delivery_count is None:
        return LOOKS[stretch.standing].colour
    # The count after which one delivery is left has the darkest.
    last = max(2, (delivery_limit or 5) - 1)
    level = (min(stretch.delivery_count, last) - 1) / (last - 1)
    return _ORANGES[max(0, int(level * (len(_ORANGES) - 1)))]


def _span(seen: Iterable[PartitionInside]) -> int:
    return max((sum(s.count for s in each.stretches) for each in seen), default=0) or 1


def _strip(
    key: TopicPartition, inside: PartitionInside, span: int, group: GroupInside
) -> Strip:
    start = inside.start_offset or 0
    pieces = tuple(
        Piece(
            (each.first_offset - start) / span,
            (each.last_offset + 1 - start) / span,
            each,
        )
        for each in inside.stretches
    )
    limit = group.facts.record_locks
    verdict = group.findings[key][0]
    return Strip(
        key=key,
        inside=inside,
        span=span,
        pieces=pieces,
        limit=limit / span if limit is not None and limit <= span else None,
        severity=verdict.severity,
        verdict=verdict.text,
    )


def _chief(one: Stretch | None, other: Stretch) -> Stretch:
    if one is None or _weight(other) < _weight(one):
        return other
    return one


def _weight(stretch: Stretch) -> tuple[int, int]:
    return _IMPORTANCE.index(stretch.standing), -(stretch.delivery_count or 0)
