"""The picture: rows per second of both sources, one panel per value size."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from tests.bench.report.charts import (
    AXIS_MARGIN,
    WHISKERS,
    colour,
    hide_spines,
    panel_grid,
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
from tests.bench.spark.options import KAFKA, MODES, SHARE_GROUP, SINKS
from tests.bench.spark.page import NAMES

__all__ = ["draw"]

Measurements = Sequence[Measurement]

BAR_THICKNESS: Final = 0.38  # fraction of a row
THOUSAND: Final = 1e3


def draw(measurements: Measurements, path: Path) -> bool:
    """Draw the picture; return whether there were results to draw."""
    pairs = [(what, sink) for what in MODES for sink in SINKS]
    found = [each for what in MODES for each in select(measurements, what)]
    sizes = distinct(found, "size")
    if not sizes:
        return False
    pyplot.switch_backend("Agg")  # works without a screen
    pyplot.rcParams.update({"font.size": 9, "axes.titlesize": 10, "axes.grid": False})
    figure, panels = panel_grid(1, len(sizes), 2 * len(pairs) + 1)
    for axes, size in zip(panels[0], sizes, strict=True):
        _panel(axes, [each for each in found if each["size"] == size], pairs)
        axes.set_title(f"values of {size_of(size)}")
    inks = [Patch(color=colour(name), label=title) for name, title in NAMES.items()]
    figure.legend(handles=inks, loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(path, dpi=130, metadata={"Software": None})
    pyplot.close(figure)
    return True


def _panel(axes: Axes, found: Measurements, pairs: Sequence[tuple[str, str]]) -> None:
    longest = 0.0
    for client, side in ((SHARE_GROUP, -1), (KAFKA, 1)):
        for place, (what, sink) in enumerate(pairs):
            some = select(found, what, sink=sink)
            if (each := by_client(some, records_per_second).get(client)) is None:
                continue
            ratio = (
                ratios(some, records_per_second, KAFKA).get(SHARE_GROUP)
                if client == SHARE_GROUP
                else None
            )
            _bar(axes, place + side * BAR_THICKNESS / 2, client, each, ratio)
            longest = max(longest, each.high / THOUSAND)
    axes.set_xlim(0, AXIS_MARGIN * longest or 1)
    axes.set_xlabel("thousand rows per second; in brackets, ratio to the Kafka source")
    axes.set_yticks(range(len(pairs)), [f"{what},\n{sink}" for what, sink in pairs])
    axes.set_ylim(len(pairs) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    hide_spines(axes)


def _bar(
    axes: Axes,
    place: float,
    client: str,
    each: Spread,
    ratio: Spread | None,
) -> None:
    middle = each.median / THOUSAND
    reach = [[middle - each.low / THOUSAND], [each.high / THOUSAND - middle]]
    axes.barh(
        place,
        middle,
        height=BAR_THICKNESS,
        xerr=reach,
        color=colour(client),
        error_kw=WHISKERS,
    )
    axes.annotate(
        f"{middle:,.0f}" + (f"  ({ratio.median:.2f})" if ratio else ""),
        (each.high / THOUSAND, place),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
    )
