"""A run's batches as a picture: rows above, latency below; SVG, from numbers alone."""

from collections.abc import Sequence
from typing import Final

from sharecons.spark.pipeline.figures import BatchFigures

__all__ = ["picture"]

WIDTH: Final = 720
HEIGHT: Final = 160
LEFT: Final = 64
TOP: Final = 28
GAP: Final = 44

ROWS, BAD, MEDIAN, TAIL = "#3b7dd8", "#d8573b", "#4c9f70", "#b08900"


def picture(batches: Sequence[BatchFigures]) -> str:
    """Draw rows and quarantined records of each batch, and its latency."""
    panels = [
        _panel(
            "rows a batch",
            0,
            {
                ("valid", ROWS): [b.rows for b in batches],
                ("quarantined", BAD): [b.quarantined for b in batches],
            },
        ),
        _panel(
            "seconds from a record's timestamp to its batch",
            1,
            {
                ("p50", MEDIAN): [b.latency_p50 for b in batches],
                ("p99", TAIL): [b.latency_p99 for b in batches],
            },
        ),
    ]
    height = TOP + 2 * (HEIGHT + GAP)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n'
        + "".join(panels)
        + "</svg>\n"
    )


def _panel(title: str, row: int, lines: dict[tuple[str, str], Sequence[float]]) -> str:
    top = TOP + row * (HEIGHT + GAP)
    most = max((max(values, default=0) for values in lines.values()), default=0) or 1
    parts = [f'<text x="{LEFT}" y="{top - 8}" fill="#333">{title}</text>\n']
    parts += [
        _ruler(top + HEIGHT * (1 - share), most * share) for share in (0.0, 0.5, 1.0)
    ]
    for number, ((name, colour), values) in enumerate(lines.items()):
        x = WIDTH - 90 * (len(lines) - number)
        parts.append(f'<text x="{x}" y="{top - 8}" fill="{colour}">{name}</text>\n')
        parts.append(_line(values, most, top, colour))
    return "".join(parts)


def _ruler(y: float, value: float) -> str:
    text = f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.2g}"
    return (
        f'<line x1="{LEFT}" x2="{WIDTH - 12}" y1="{y:.1f}" y2="{y:.1f}" '
        'stroke="#ddd"/>\n'
        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#666">{text}'
        "</text>\n"
    )


def _line(values: Sequence[float], most: float, top: int, colour: str) -> str:
    width = WIDTH - 12 - LEFT
    step = width / max(len(values) - 1, 1)
    points = [
        (LEFT + index * step, top + HEIGHT * (1 - value / most))
        for index, value in enumerate(values)
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
