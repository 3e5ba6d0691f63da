"""An inspection as a picture; needs matplotlib (`pip install sharecons[plot]`)."""

import warnings
from datetime import UTC, datetime
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from sharecons.errors import ConfigurationError
from sharecons.escaping import escape
from sharecons.inspection.diagnosis.findings import Severity, format_age
from sharecons.inspection.diagnosis.offset_states import (
    SETTLED,
    OffsetRange,
    OffsetStatus,
)
from sharecons.inspection.inspect import GroupInspection
from sharecons.inspection.offset_bars import (
    LEGEND,
    STYLES,
    OffsetBar,
    colour_of,
    offset_bars_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

WIDTH: Final = 14.0
ROW_HEIGHT: Final = 0.56
MARGIN: Final = 2.1
"""In inches: total width, height of a row, and space above and below the rows."""

BAR_HEIGHT: Final = 0.6
LINE_LENGTH: Final = 84
MAX_NAME_LENGTH: Final = 18
"""Characters of a line beside a bar, and of a topic's name before it."""

MAX_TICKS: Final = 8
MIN_WIDTH: Final = 0.003
"""Minimum width of unsettled ranges, as a fraction of the bar."""

_HATCHES: Final = {OffsetStatus.ARCHIVED: "////", OffsetStatus.ABOVE: ".."}
_EDGES: Final = {OffsetStatus.ARCHIVED: "#5a5a5a", OffsetStatus.ABOVE: "#B4C0CA"}
_MARKS: Final = {Severity.STALLED: "#8C2D04", Severity.WARNING: "#B35C00"}


_RARE: Final = (OffsetStatus.ARCHIVING, OffsetStatus.UNKNOWN, OffsetStatus.REMOVED)
"""Statuses that are in the legend only if they occur, so that it fits."""


def draw(group: GroupInspection, path: Path) -> None:
    """Draw a bar with numbers and finding for each partition, as a PNG.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigurationError(
            "a PNG needs matplotlib: pip install 'sharecons[plot]'; HTML needs nothing"
        ) from error
    bars = offset_bars_of(group)
    height = MARGIN + ROW_HEIGHT * max(1, len(bars))
    figure = Figure(figsize=(WIDTH, height), dpi=110, facecolor="white")
    axes = figure.add_axes(
        (0.13, 0.95 / height, 0.50, ROW_HEIGHT * max(1, len(bars)) / height)
    )
    for row, strip in enumerate(bars):
        _draw_bar(axes, row, strip, group)
    _draw_axes(axes, bars)
    _title(figure, group, height)
    _legend(figure, group, height)
    with warnings.catch_warnings():
        # The font can lack glyphs of the group's name; it shows boxes instead.
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(path, format="png")


def _draw_bar(axes: "Axes", row: int, bar: OffsetBar, group: GroupInspection) -> None:
    for segment in bar.segments:
        offset_range = segment.offset_range
        width = segment.right - segment.left
        is_open = offset_range.status is OffsetStatus.OPEN
        axes.barh(
            row,
            max(width, MIN_WIDTH) if is_open else width,
            left=segment.left,
            height=BAR_HEIGHT,
            color=colour_of(offset_range, group.facts.delivery_limit),
            hatch=_HATCHES.get(offset_range.status),
            edgecolor=_EDGES.get(offset_range.status, "none"),
            linewidth=0,
            zorder=3 if is_open else 2,
        )
    if bar.limit is not None:
        ends = (row - 0.45, row + 0.45)
        axes.plot([bar.limit] * 2, ends, color="black", ls="--", lw=1.2, zorder=4)
    colour = _MARKS.get(bar.severity, "#333333")
    axes.text(
        1.015,
        row - 0.24,
        _numbers(bar, group),
        fontsize=8.5,
        color="#333333",
        va="center",
    )
    axes.text(
        1.015,
        row - 0.06,
        _shortened(bar),
        fontsize=7.5,
        color=colour,
        va="top",
        weight="bold" if bar.severity is Severity.STALLED else "normal",
    )


def _numbers(bar: OffsetBar, group: GroupInspection) -> str:
    partition = bar.partition
    parts = [
        f"from {partition.start_offset}"
        if partition.start_offset is not None
        else "new",
        f"{partition.count(*SETTLED):,} settled",
        f"{partition.count(OffsetStatus.OPEN):,} open",
        f"{partition.count(OffsetStatus.ABOVE):,} above",
    ]
    if partition.oldest is not None:
        parts.append(f"oldest {format_age(partition.oldest, group.at)}")
    return "  ·  ".join(parts)


def _shortened(bar: OffsetBar) -> str:
    text = bar.text
    if bar.severity >= Severity.WARNING:
        text = f"{bar.severity.name}: {text}"
    return "\n".join(wrap(text, LINE_LENGTH, max_lines=2, placeholder=" …"))


def _name(topic: str, partition: int) -> str:
    """Return the name of a partition, shortened to fit beside its bar."""
    if len(topic) > MAX_NAME_LENGTH:
        topic = (
            f"{topic[: MAX_NAME_LENGTH // 2]}…{topic[-(MAX_NAME_LENGTH // 2) + 1 :]}"
        )
    return f"{topic}-{partition}"


def _step(span: int) -> int:
    """Return the distance of ticks, a round number of offsets."""
    size = 1
    while size * 10 <= span:
        size *= 10
    steps = (size // 5, size // 2, size, 2 * size)
    return next(step for step in steps if step and span / step <= MAX_TICKS)


def _draw_axes(axes: "Axes", bars: tuple[OffsetBar, ...]) -> None:
    axes.set_xlim(0, 1)
    axes.set_ylim(max(1, len(bars)) - 0.4, -0.6)
    axes.set_yticks(
        range(len(bars)),
        [_name(*strip.key) for strip in bars],
        fontsize=9,
    )
    span = bars[0].span if bars else 10
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
    parts = [f"{group.group.state}, members: {facts.members}"]
    if facts.record_locks is not None:
        parts.append(f"window {facts.record_locks:,} offsets (dashed line)")
    if facts.delivery_limit is not None:
        parts.append(f"{facts.delivery_limit} deliveries at most")
    parts.append(at)
    top = 1 - 0.3 / height
    title = escape(f"Share group {group.group.group_id}")
    figure.text(
        0.02, top, title, fontsize=14, weight="bold", va="center", parse_math=False
    )
    below = 1 - 0.58 / height
    figure.text(0.02, below, "   ·   ".join(parts), fontsize=9, va="center")


def _legend(figure: "Figure", group: GroupInspection, height: float) -> None:
    from matplotlib.patches import Patch

    handles = []
    seen = {
        stretch.status
        for inside in group.partitions.found.values()
        for stretch in inside.ranges
    }
    for status in LEGEND:
        if status in _RARE and status not in seen:
            continue
        style = STYLES[status]
        words = style.label
        colours = [(style.colour, words)]
        if status is OffsetStatus.OPEN:
            colours = [
                (_sample_colour(1), f"{words}, delivered once"),
                (_sample_colour(4), "… near its last delivery"),
            ]
        handles += [
            Patch(
                facecolor=colour,
                hatch=_HATCHES.get(status),
                edgecolor=_EDGES.get(status, "none"),
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


def _sample_colour(delivery_count: int) -> str:
    offset_range = OffsetRange(
        first_offset=0,
        last_offset=0,
        status=OffsetStatus.OPEN,
        delivery_count=delivery_count,
    )
    return colour_of(offset_range, 5)
