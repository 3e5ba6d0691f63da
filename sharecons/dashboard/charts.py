"""Lines of values over time, as SVG."""

import html
from collections.abc import Sequence
from typing import Final, NamedTuple

__all__ = ["Chart", "chart_svg", "small_svg"]

WIDTH: Final = 600
HEIGHT: Final = 90
TOP: Final = 6
SMALL_WIDTH: Final = 96
SMALL_HEIGHT: Final = 18
SMALL_POINTS: Final = 48


class Chart(NamedTuple):
    """A line: times in seconds since the epoch, and values; None is a gap.

    Attributes:
        name: of the values, in a few words.
        unit: is written after the largest value.
    """

    name: str
    times: Sequence[float]
    values: Sequence[float | None]
    unit: str = ""


def chart_svg(chart: Chart) -> str:
    """Return the line as an `<svg>` element, after a caption that describes it."""
    known = [each for each in chart.values if each is not None]
    name = html.escape(chart.name)
    if len(known) < 2:
        return f"<figcaption>{name}: not yet</figcaption>"
    label = html.escape(_describe(chart, known))
    return (
        f"<figcaption>{label}</figcaption>"
        f'<svg class="chart" aria-hidden="true" preserveAspectRatio="none" '
        f'viewBox="0 0 {WIDTH} {HEIGHT + TOP + 1}">'
        f'<path class="chart-axis" d="M0 {TOP + HEIGHT}h{WIDTH}M0 {TOP}h{WIDTH}"/>'
        f'<path class="chart-line" d="{_path(chart, WIDTH, HEIGHT, TOP)}"/></svg>'
    )


def small_svg(chart: Chart) -> str:
    """Return a line for a cell of a table; nothing before the second point."""
    # Every n-th point, and always the last one.
    step = -(-len(chart.values) // SMALL_POINTS)
    last = (len(chart.values) - 1) % (step or 1)
    chart = chart._replace(
        times=chart.times[last :: step or 1], values=chart.values[last :: step or 1]
    )
    known = [each for each in chart.values if each is not None]
    if len(known) < 2:
        return ""
    label = html.escape(_describe(chart, known))
    return (
        '<svg class="small" role="img" '
        f'viewBox="0 -1 {SMALL_WIDTH} {SMALL_HEIGHT + 2}" aria-label="{label}">'
        f"<title>{label}</title>"
        f'<path class="chart-line" d="{_path(chart, SMALL_WIDTH, SMALL_HEIGHT)}"/>'
        "</svg>"
    )


def _describe(chart: Chart, known: Sequence[float]) -> str:
    return (
        f"{chart.name}: now {_number(known[-1])}{chart.unit}, "
        f"between {_number(min(known))} and {_number(max(known))}"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _path(chart: Chart, width: int, height: int, top: int = 0) -> str:
    first, span = chart.times[0], (chart.times[-1] - chart.times[0]) or 1.0
    most = max((each for each in chart.values if each is not None), default=0) or 1.0
    parts: list[str] = []
    command = "M"
    for at, value in zip(chart.times, chart.values, strict=True):
        if value is None:
            command = "M"
            continue
        x = (at - first) / span * width
        y = top + height - value / most * height
        parts.append(f"{command}{x:.1f} {y:.1f}")
        command = "L"
    return "".join(parts)
