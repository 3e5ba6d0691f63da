"""A look at a group as a picture; needs matplotlib (`pip install sharecons[plot]`)."""

import warnings
from datetime import UTC, datetime
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from sharecons.errors import ConfigurationError
from sharecons.escaping import escape
from sharecons.inspection.inspect import GroupInspection
from sharecons.inspection.offset_bars import (
    LEGEND,
    LOOKS,
    OffsetBar,
    offset_bars_of,
    shade,
)
from sharecons.protocol.diagnosis.findings import Severity, duration
from sharecons.protocol.diagnosis.offset_states import (
    SETTLED,
    OffsetRange,
    OffsetStatus,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

WIDTH: Final = 14.0
ROW: Final = 0.56
MARGIN: Final = 2.1
"""Inches: the whole, each strip, and what is above and below them."""

THICK: Final = 0.6
LINE: Final = 84
LONGEST: Final = 18
"""Characters: of a line beside a strip, and of a topic's name before it."""

MOST_TICKS: Final = 8
NARROWEST: Final = 0.003
"""Of what is not settled, in widths of the strip."""

_HATCHES: Final = {OffsetStatus.ARCHIVED: "////", OffsetStatus.ABOVE: ".."}
_EDGES: Final = {OffsetStatus.ARCHIVED: "#5a5a5a", OffsetStatus.ABOVE: "#B4C0CA"}
_MARKS: Final = {Severity.STALLED: "#8C2D04", Severity.WARNING: "#B35C00"}


_RARE: Final = (OffsetStatus.ARCHIVING, OffsetStatus.UNKNOWN, OffsetStatus.REMOVED)
"""Left out of the legend where there are none, so that it fits."""


def draw(group: GroupInspection, path: Path) -> None:
    """Draw each partition as a strip, with its numbers, into a PNG.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigurationError(
            "a PNG needs matplotlib: pip install 'sharecons[plot]'; HTML needs nothing"
        ) from error
    strips = offset_bars_of(group)
    height = MARGIN + ROW * max(1, len(strips))
    figure = Figure(figsize=(WIDTH, height), dpi=110, facecolor="white")
    axes = figure.add_axes(
        (0.13, 0.95 / height, 0.50, ROW * max(1, len(strips)) / height)
    )
    for row, strip in enumerate(strips):
        _draw_strip(axes, row, strip, group)
    _frame(axes, strips)
    _title(figure, group, height)
    _legend(figure, group, height)
    with warnings.catch_warnings():
        # The font lacks glyphs that a group's name may have; boxes stand for them.
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(path, format="png")


def _draw_strip(
    axes: "Axes", row: int, strip: OffsetBar, group: GroupInspection
) -> None:
    for piece in strip.pieces:
        stretch = piece.stretch
        width = piece.right - piece.left
        is_open = stretch.status is OffsetStatus.OPEN
        axes.barh(
            row,
            max(width, NARROWEST) if is_open else width,
            left=piece.left,
            height=THICK,
            color=shade(stretch, group.facts.delivery_limit),
            hatch=_HATCHES.get(stretch.status),
            edgecolor=_EDGES.get(stretch.status, "none"),
            linewidth=0,
            zorder=3 if is_open else 2,
        )
    if strip.limit is not None:
        ends = (row - 0.45, row + 0.45)
        axes.plot([strip.limit] * 2, ends, color="black", ls="--", lw=1.2, zorder=4)
    colour = _MARKS.get(strip.severity, "#333333")
    axes.text(
        1.015,
        row - 0.24,
        _numbers(strip, group),
        fontsize=8.5,
        color="#333333",
        va="center",
    )
    axes.text(
        1.015,
        row - 0.06,
        _shortened(strip),
        fontsize=7.5,
        color=colour,
        va="top",
        weight="bold" if strip.severity is Severity.STALLED else "normal",
    )


def _numbers(strip: OffsetBar, group: GroupInspection) -> str:
    inside = strip.inside
    parts = [
        f"from {inside.start_offset}" if inside.start_offset is not None else "new",
        f"{inside.count(*SETTLED):,} settled",
        f"{inside.count(OffsetStatus.OPEN):,} open",
        f"{inside.count(OffsetStatus.ABOVE):,} above",
    ]
    if inside.oldest is not None:
        parts.append(f"oldest {duration(group.at - inside.oldest.timestamp / 1000)}")
    return "  ·  ".join(parts)


def _shortened(strip: OffsetBar) -> str:
    text = strip.verdict
    if strip.severity >= Severity.WARNING:
        text = f"{strip.severity.name}: {text}"
    return "\n".join(wrap(text, LINE, max_lines=2, placeholder=" …"))


def _name(topic: str, partition: int) -> str:
    """Spell a partition so that it fits beside its strip."""
    if len(topic) > LONGEST:
        topic = f"{topic[: LONGEST // 2]}…{topic[-(LONGEST // 2) + 1 :]}"
    return f"{topic}-{partition}"


def _step(span: int) -> int:
    """Give a round number of offsets, of which a few fit into the strip."""
    size = 1
    while size * 10 <= span:
        size *= 10
    steps = (size // 5, size // 2, size, 2 * size)
    return next(step for step in steps if step and span / step <= MOST_TICKS)


def _frame(axes: "Axes", strips: tuple[OffsetBar, ...]) -> None:
    axes.set_xlim(0, 1)
    axes.set_ylim(max(1, len(strips)) - 0.4, -0.6)
    axes.set_yticks(
        range(len(strips)),
        [_name(*strip.key) for strip in strips],
        fontsize=9,
    )
    span = strips[0].span if strips else 10
    offsets = range(0, span + 1, _step(span))
    axes.set_xticks(
        [offset / span for offset in offsets],
        [f"{offset:,}" for offset in offsets],
        fontsize=8.5,
    )
    axes.set_xlabel("offsets from each partition's start offset on", fontsize=9)
    axes.tick_params(length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="x", color="#DDE3E8", lw=0.7, zorder=0)
    axes.set_axisbelow(True)


def _title(figure: "Figure", group: GroupInspection, height: float) -> None:
    at = datetime.fromtimestamp(group.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    facts = group.facts
    says = [f"{group.group.state}, members: {facts.members}"]
    if facts.record_locks is not None:
        says.append(f"window {facts.record_locks:,} offsets (dashed line, if in sight)")
    if facts.delivery_limit is not None:
        says.append(f"{facts.delivery_limit} deliveries at most")
    says.append(at)
    top = 1 - 0.3 / height
    title = escape(f"Share group {group.group.group_id} from inside")
    figure.text(
        0.02, top, title, fontsize=14, weight="bold", va="center", parse_math=False
    )
    below = 1 - 0.58 / height
    figure.text(0.02, below, "   ·   ".join(says), fontsize=9, va="center")


def _legend(figure: "Figure", group: GroupInspection, height: float) -> None:
    from matplotlib.patches import Patch

    handles = []
    seen = {
        stretch.status
        for inside in group.partitions.found.values()
        for stretch in inside.ranges
    }
    for standing in LEGEND:
        if standing in _RARE and standing not in seen:
            continue
        looks = LOOKS[standing]
        words = looks.words
        colours = [(looks.colour, words)]
        if standing is OffsetStatus.OPEN:
            colours = [
                (_sample(1), f"{words}, delivered once"),
                (_sample(4), "… near its last delivery"),
            ]
        handles += [
            Patch(
                facecolor=colour,
                hatch=_HATCHES.get(standing),
                edgecolor=_EDGES.get(standing, "none"),
                label=label,
                linewidth=0,
            )
            for colour, label in colours
        ]
    figure.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(0.012, 1 - 0.87 / height),
        ncols=len(handles),
        fontsize=8,
        frameon=False,
        handlelength=1.4,
        columnspacing=1.2,
    )


def _sample(delivery_count: int) -> str:
    stretch = OffsetRange(
        first_offset=0,
        last_offset=0,
        status=OffsetStatus.OPEN,
        delivery_count=delivery_count,
    )
    return shade(stretch, 5)
