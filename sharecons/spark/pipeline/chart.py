"""Draws a chart of a run's batches as SVG: rows above, latency below."""

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Final

from sharecons.spark.pipeline.stats import BatchStats

__all__ = ["draw_chart"]

WIDTH: Final = 720
HEIGHT: Final = 160
LEFT: Final = 64
RIGHT: Final = WIDTH - 16
TOP: Final = 28
GAP: Final = 52
BOTTOM: Final = 14

STEPS: Final = (1, 2, 2.5, 5, 10)
"""Steps of the axes, to be multiplied by a power of ten."""

ROWS, BAD, MEDIAN, TAIL = "#3b7dd8", "#d8573b", "#4c9f70", "#b08900"

Lines = dict[tuple[str, str], Sequence[float]]
"""The values of lines, by name and colour."""


def draw_chart(batches: Sequence[BatchStats]) -> str:
    """Return an SVG with the rows, quarantined records and latency of each batch."""
    rows: Lines = {
        ("valid", ROWS): [b.rows for b in batches],
        ("quarantined", BAD): [b.quarantined for b in batches],
    }
    seconds: Lines = {
        ("p50", MEDIAN): [b.latency_p50 for b in batches],
        ("p99", TAIL): [b.latency_p99 for b in batches],
    }
    ids = [b.number for b in batches]
    lower = TOP + HEIGHT + GAP
    height = lower + HEIGHT + GAP + BOTTOM
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n'
        + _panel("rows per batch", TOP, rows, ids, min_step=1)
        + _panel("seconds from a record's timestamp to its batch", lower, seconds, ids)
        + _text((LEFT + RIGHT) / 2, height - BOTTOM, "batch", "middle")
        + "</svg>\n"
    )


def _panel(
    title: str, top: int, lines: Lines, ids: Sequence[int], *, min_step: float = 0
) -> str:
    marks = _axis_marks(
        max(map(max, filter(None, lines.values())), default=0), min_step
    )
    parts = [_text(LEFT, top - 10, title, "start", "#333")]
    parts += [_grid_line(top + HEIGHT * (1 - mark / marks[-1]), mark) for mark in marks]
    parts.append(_batch_labels(top + HEIGHT + 18, ids))
    for number, ((name, colour), values) in enumerate(lines.items()):
        x = WIDTH - 90 * (len(lines) - number)
        parts.append(_text(x, top - 10, name, "start", colour))
        parts.append(_line(values, marks[-1], top, colour))
    return "".join(parts)


def _axis_marks(highest: float, min_step: float) -> list[float]:
    """Round numbers from 0 to the first that is not below `most`; some four."""
    step = max(_round_up(highest / 4), min_step)
    return [step * number for number in range(max(1, ceil(highest / step)) + 1)]


def _round_up(value: float) -> float:
    if value <= 0:
        return 0.25
    power: float = 10.0 ** floor(log10(value))
    return next((s * power for s in STEPS if s * power >= value), 10 * power)


def _batch_labels(y: float, ids: Sequence[int]) -> str:
    """Return labels with the ids of batches, up to a legible number."""
    every = max(1, ceil(_round_up(len(ids) / 10)))
    shown = range(0, len(ids), every)
    return "".join(_text(_x(at, len(ids)), y, str(ids[at]), "middle") for at in shown)


def _x(at: int, count: int) -> float:
    """Return the horizontal position of a batch; a single one is in the middle."""
    return LEFT + (RIGHT - LEFT) * (at / (count - 1) if count > 1 else 0.5)


def _grid_line(y: float, value: float) -> str:
    return (
        f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>\n'
        + _text(LEFT - 6, y + 4, _number(value), "end")
    )


def _number(value: float) -> str:
    return f"{value:,.6f}".rstrip("0").rstrip(".")


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#666") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}'
        "</text>\n"
    )


def _line(values: Sequence[float], highest: float, top: int, colour: str) -> str:
    points = [
        (_x(at, len(values)), top + HEIGHT * (1 - value / highest))
        for at, value in enumerate(values)
    ]
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>\n'
        for x, y in points
    )
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<polyline points="{path}" fill="none" stroke="{colour}" '
        f'stroke-width="1.5"/>\n{dots}'
    )
