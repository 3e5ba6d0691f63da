"""Panels of the pictures: bars, pairs of percentiles, lines."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.bench.report.summary import (
    Measurement,
    Spread,
    Value,
    by_client,
    distinct,
)
from tests.bench.report.tables import title

__all__ = [
    "colour",
    "draw_bars",
    "draw_lines",
    "draw_percentiles",
    "hide_spines",
    "panel_grid",
    "save",
    "scale",
]

Measurements = Sequence[Measurement]
Spreads = Mapping[str, Spread]

# sharecons in blue, other clients in warm colours, the raw ceiling in grey.
COLOURS: Final = {
    "sharecons": "#1f5fa8",
    "confluent": "#d9822b",
    "java": "#b5473c",
    "franz": "#8c6d31",
    "raw": "#8a8a8a",
}
PANEL_WIDTH: Final = 5.2  # inches
SINGLE_PANEL_WIDTH: Final = 7.0  # inches
BAR_HEIGHT: Final = 0.34  # inches
AXIS_MARGIN: Final = 1.45  # axis length / longest bar; leaves room for labels
WHISKERS: Final[Mapping[str, Any]] = {
    "elinewidth": 1.2,
    "capsize": 3,
    "ecolor": "#222222",
}


pyplot.switch_backend("Agg")  # works without a screen
pyplot.rcParams.update({"font.size": 9, "axes.titlesize": 10, "axes.grid": False})


def save(figure: Figure, path: Path) -> Path:
    figure.savefig(path, dpi=130, metadata={"Software": None})
    pyplot.close(figure)
    return path


def panel_grid(rows: int, columns: int, bars: int) -> tuple[Figure, Any]:
    """Return a figure with rows of panels, each with room for `bars` bars."""
    width = SINGLE_PANEL_WIDTH if columns == 1 else PANEL_WIDTH * columns
    size = (width, rows * (BAR_HEIGHT * bars + 0.9) + 0.4)
    return pyplot.subplots(
        rows, columns, figsize=size, squeeze=False, layout="constrained"
    )


def draw_bars(
    axes: Axes, spreads: Spreads, what: str, notes: Mapping[str, str] | None = None
) -> None:
    """Draw a bar per client, with whiskers from minimum to maximum."""
    middle = [each.median for each in spreads.values()]
    low = [each.median - each.low for each in spreads.values()]
    high = [each.high - each.median for each in spreads.values()]
    axes.barh(
        range(len(spreads)),
        middle,
        xerr=[low, high],
        color=[colour(name) for name in spreads],
        error_kw=WHISKERS,
    )
    for place, (name, each) in enumerate(spreads.items()):
        axes.annotate(
            (notes or {}).get(name, f"{each.median:.2f}"),
            (each.high, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
    longest = max((each.high for each in spreads.values()), default=0)
    axes.set_xlim(0, AXIS_MARGIN * longest or 1)
    axes.set_xlabel(what)
    axes.invert_yaxis()
    _name_rows(axes, spreads)


def _name_rows(axes: Axes, names: Mapping[str, Any]) -> None:
    axes.set_yticks(range(len(names)), [title(name) for name in names])
    axes.tick_params(axis="y", length=0)
    hide_spines(axes)


def hide_spines(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)


def scale(spreads: Spreads, factor: float) -> dict[str, Spread]:
    return {
        name: Spread(each.median * factor, each.low * factor, each.high * factor)
        for name, each in spreads.items()
    }


def colour(name: str) -> str:
    return COLOURS[name.partition("-")[0]]


def draw_percentiles(axes: Axes, lower: Spreads, higher: Spreads, what: str) -> None:
    """Draw two figures per client, a dot and a square, on a logarithmic axis."""
    for place, (name, low) in enumerate(lower.items()):
        high, ink = higher[name], colour(name)
        axes.plot([low.median, high.median], [place, place], color=ink, linewidth=3)
        for each, marker in ((low, "o"), (high, "s")):
            at = [[each.median - each.low], [each.high - each.median]]
            axes.errorbar(
                each.median, place, xerr=at, fmt=marker, color=ink, **WHISKERS
            )
            axes.annotate(
                f"{each.median:.2g}",
                (each.median, place),
                xytext=(0, 9),
                textcoords="offset points",
                ha="center",
            )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(f"{what}, logarithmic")
    axes.set_ylim(len(lower) - 0.4, -0.8)
    _name_rows(axes, lower)


def draw_lines(axes: Axes, found: Measurements, label: str, value: Value) -> None:
    """Draw a line per client, in a band from minimum to maximum.

    The other modes of a client are dashed lines of its colour.
    """
    counts = distinct(found, label)
    for name in by_client(found, value):
        measured = [each for each in found if each["client"] == name]
        points = [
            (count, by_client([e for e in measured if e[label] == count], value)[name])
            for count in counts
            if any(each[label] == count for each in measured)
        ]
        at = [count for count, _ in points]
        middle = [each.median for _, each in points]
        low, high = [e.low for _, e in points], [e.high for _, e in points]
        style = "--" if "-" in name else "-"
        ink = colour(name)
        axes.plot(at, middle, style, marker="o", color=ink, label=title(name))
        axes.fill_between(at, low, high, color=ink, alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    hide_spines(axes)
