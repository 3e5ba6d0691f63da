"""The picture: rows per second of both sources, one panel per value size."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from tests.bench.report.charts import (
    AXIS_MARGIN,
    WHISKERS,
    colour,
    hide_spines,
    panel_grid,
    save,
    scale,
)
from tests.bench.report.summary import (
    Measurement,
    Spread,
    by_client,
    distinct,
    ratios,
    records_per_second,
    select,
)
from tests.bench.report.tables import size_of
from tests.bench.spark.options import KAFKA, PAIRS, SHARE_GROUP
from tests.bench.spark.page import NAMES, TITLES

__all__ = ["draw"]

Measurements = Sequence[Measurement]

BAR_THICKNESS: Final = 0.38  # fraction of a row


def draw(measurements: Measurements, path: Path) -> bool:
    """Draw the picture; return whether there were results to draw."""
    found = [each for what in TITLES for each in select(measurements, what)]
    sizes = distinct(found, "size")
    if not sizes:
        return False
    figure, panels = panel_grid(1, len(sizes), 2 * len(PAIRS) + 1)
    for axes, size in zip(panels[0], sizes, strict=True):
        _panel(axes, [each for each in found if each["size"] == size])
        axes.set_title(f"values of {size_of(size)}")
    inks = [Patch(color=colour(name), label=title) for name, title in NAMES.items()]
    figure.legend(handles=inks, loc="outside lower center", ncols=2, frameon=False)
    save(figure, path)
    return True


def _panel(axes: Axes, found: Measurements) -> None:
    longest = 0.0
    for place, (what, sink) in enumerate(PAIRS):
        some = select(found, what, sink=sink)
        ratio = ratios(some, records_per_second, KAFKA).get(SHARE_GROUP)
        thousands = scale(by_client(some, records_per_second), 1e-3)
        for client, side in ((SHARE_GROUP, -1), (KAFKA, 1)):
            if each := thousands.get(client):
                shown = ratio if client == SHARE_GROUP else None
                _bar(axes, place + side * BAR_THICKNESS / 2, client, each, shown)
                longest = max(longest, each.high)
    axes.set_xlim(0, AXIS_MARGIN * longest or 1)
    axes.set_xlabel("thousand rows per second; in brackets, ratio to the Kafka source")
    axes.set_yticks(range(len(PAIRS)), [f"{what},\n{sink}" for what, sink in PAIRS])
    axes.set_ylim(len(PAIRS) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    hide_spines(axes)


def _bar(
    axes: Axes, place: float, client: str, each: Spread, ratio: Spread | None
) -> None:
    axes.barh(
        place,
        each.median,
        height=BAR_THICKNESS,
        xerr=[[each.median - each.low], [each.high - each.median]],
        color=colour(client),
        error_kw=WHISKERS,
    )
    axes.annotate(
        f"{each.median:,.0f}" + (f"  ({ratio.median:.2f})" if ratio else ""),
        (each.high, place),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
    )
