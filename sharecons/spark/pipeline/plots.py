"""Draws plots of a run as SVG, as wide as a phone, in the colours of its page.

Rule: lines differ by their dashes too, not by colour alone.

Each point has a title, which browsers show when the mouse is over it, so that a page
needs no script.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from typing import Final

from sharecons.spark.pipeline.points import Point

__all__ = ["Line", "Plot", "axis_marks", "draw_plot", "format_number"]

WIDTH: Final = 360
HEIGHT: Final = 190
LEFT: Final = 46
RIGHT: Final = WIDTH - 8
TOP: Final = 10
BOTTOM: Final = HEIGHT - 24

STEPS: Final = (1, 2, 2.5, 5, 10)
"""Steps of the axes, to be multiplied by a power of ten."""

MAX_DOTS: Final = 60
"""Points of a line that has dots: more would cover each other."""

MAX_BAR: Final = 6.0

MAX_RESTARTS: Final = 30
"""Starts of runs that are marked by lines."""

UNITS: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))

DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a plot.

    Attributes:
        name: in the legend.
        style: the CSS class: "a" or "b".
        value: returns the value at a point, or None where the line has a gap.
    """

    name: str
    style: str
    value: Callable[[Point], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot.

    Attributes:
        title: the name of the values, with their unit.
        lines: one or two.
        bars: draw a bar at each point instead of a line.
        min_step: the smallest step of the axis: 1 for counts.
    """

    title: str
    lines: Sequence[Line]
    bars: bool = False
    min_step: float = 0.0


def draw_plot(plot: Plot, points: Sequence[Point]) -> str:
    """Return an SVG, for a page that defines the classes of its parts."""
    values = [[line.value(point) for point in points] for line in plot.lines]
    known = [value for line in values for value in line if value is not None]
    marks = axis_marks(max(known, default=0.0), plot.min_step)
    xs = _positions([point.at for point in points])
    parts = [_grid(marks), _time_labels(points), _restarts(points, xs)]
    for line, found in zip(plot.lines, values, strict=True):
        ys = [None if v is None else _y(v / marks[-1]) for v in found]
        draw = _draw_bars if plot.bars else _draw_line
        parts.append(draw(line.style, points, xs, ys))
    parts.append(_titles(plot, points, xs, values))
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(_summary(plot, values))}">\n{"".join(parts)}</svg>\n'
    )


def axis_marks(highest: float, min_step: float = 0.0) -> list[float]:
    """Return some four round numbers, from 0 to the first not below `highest`."""
    step = max(_round_up(highest / 4), min_step)
    return [step * number for number in range(max(1, ceil(highest / step)) + 1)]


def format_number(value: float) -> str:
    """Return a number with three digits and a unit: 1.23k, 45.6M, 0.042."""
    for factor, unit in UNITS:
        # 999.6 is 1k, not 1000.
        if abs(value) >= factor * 0.9995:
            return f"{float(f'{value / factor:.3g}'):g}{unit}"
    return f"{float(f'{value:.3g}'):g}"


def _round_up(value: float) -> float:
    if value <= 0:
        return 0.25
    power: float = 10.0 ** floor(log10(value))
    return next((s * power for s in STEPS if s * power >= value), 10 * power)


def _positions(times: Sequence[datetime]) -> list[float]:
    """Return the horizontal positions of times; a single one is in the middle."""
    if not times:
        return []
    span = (times[-1] - times[0]).total_seconds()
    if span <= 0:
        return [(LEFT + RIGHT) / 2] * len(times)
    scale = (RIGHT - LEFT) / span
    return [LEFT + (each - times[0]).total_seconds() * scale for each in times]


def _y(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * share


def _grid(marks: Sequence[float]) -> str:
    parts = []
    for mark in marks:
        y = _y(mark / marks[-1])
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{RIGHT}"/>\n')
        parts.append(_text(LEFT - 5, y + 4, format_number(mark), "end"))
    return "".join(parts)


def _time_labels(points: Sequence[Point]) -> str:
    if not points:
        return ""
    first, last = points[0].at, points[-1].at
    y = HEIGHT - 8
    if first == last:
        return _text((LEFT + RIGHT) / 2, y, _time(first, 0), "middle")
    span = (last - first).total_seconds()
    # The label in the middle of a shorter plot would touch the others.
    return _text(LEFT, y, _time(first, span), "start") + _text(
        RIGHT, y, _time(last, span), "end"
    )


def _time(at: datetime, span: float) -> str:
    return at.astimezone(UTC).strftime("%m-%d %H:%M" if span > DAY else "%H:%M:%S")


def _restarts(points: Sequence[Point], xs: Sequence[float]) -> str:
    starts = [x for point, x in zip(points, xs, strict=True) if point.starts_run][1:]
    if len(starts) > MAX_RESTARTS:
        return ""
    return "".join(
        f'<path class="restart" d="M{x:.1f} {TOP}V{BOTTOM}"/>\n' for x in starts
    )


def _draw_line(
    style: str,
    points: Sequence[Point],
    xs: Sequence[float],
    ys: Sequence[float | None],
) -> str:
    """Draw a line with gaps at unknown values, and between two runs."""
    pieces: list[list[str]] = [[]]
    for point, x, y in zip(points, xs, ys, strict=True):
        if point.starts_run or y is None:
            pieces.append([])
        if y is not None:
            pieces[-1].append(f"{x:.1f} {y:.1f}")
    path = "".join(f"M{'L'.join(piece)}" for piece in pieces if len(piece) > 1)
    # A piece of one point is invisible without its dot.
    dotted = [p for p in pieces if len(p) == 1 or len(points) <= MAX_DOTS]
    dots = "".join(
        '<circle class="{}" cx="{}" cy="{}" r="2.2"/>\n'.format(style, *at.split())
        for piece in dotted
        for at in piece
    )
    line = f'<path class="line {style}" d="{path}"/>\n' if path else ""
    return line + dots


def _draw_bars(
    style: str,
    points: Sequence[Point],
    xs: Sequence[float],
    ys: Sequence[float | None],
) -> str:
    """Draw a bar at each point whose value is not 0."""
    path = "".join(
        f"M{x:.1f} {BOTTOM}V{y:.1f}"
        for x, y in zip(xs, ys, strict=True)
        if y is not None and y < BOTTOM
    )
    width = min(MAX_BAR, (RIGHT - LEFT) / max(1, len(points)) * 0.7)
    bars = f'<path class="bars {style}" stroke-width="{width:.2f}" d="{path}"/>\n'
    return bars if path else ""


def _titles(
    plot: Plot,
    points: Sequence[Point],
    xs: Sequence[float],
    values: Sequence[Sequence[float | None]],
) -> str:
    """Return invisible columns around the points, with their values as titles."""
    edges = [LEFT, *((a + b) / 2 for a, b in pairwise(xs)), RIGHT]
    parts = []
    for index, point in enumerate(points):
        x, width = edges[index], edges[index + 1] - edges[index]
        shown = ", ".join(
            f"{line.name} {_shown(found[index])}"
            for line, found in zip(plot.lines, values, strict=True)
        )
        number = "1 batch" if point.batches == 1 else f"{point.batches:,} batches"
        at = point.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        parts.append(
            f'<rect class="point" x="{x:.1f}" y="{TOP}" width="{max(width, 0.1):.1f}" '
            f'height="{BOTTOM - TOP}"><title>{escape(f"{at}, {number}: {shown}")}'
            "</title></rect>\n"
        )
    return "".join(parts)


def _summary(plot: Plot, values: Sequence[Sequence[float | None]]) -> str:
    parts = []
    for line, found in zip(plot.lines, values, strict=True):
        known = [value for value in found if value is not None]
        highest = format_number(max(known)) if known else "unknown"
        parts.append(f"{line.name}: highest {highest}")
    return f"{plot.title}. {'; '.join(parts)}"


def _shown(value: float | None) -> str:
    return "unknown" if value is None else format_number(value)


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>\n'
