"""The curves of a run: one picture for each group, kills as vertical lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from matplotlib import pyplot
from matplotlib.axes import Axes

from tests.bench.report.charts import hide_spines, save
from tests.soak.results import GroupResult, RunResult

__all__ = ["draw"]

PANELS: Final = (
    ("memory, MiB", ("rss",)),
    ("objects", ("objects",)),
    ("descriptors, tasks, threads", ("descriptors", "tasks", "threads")),
    ("records/s", ("records/s",)),
    ("latency beside kills, ms", ("p50", "p99")),
    ("latency at kills, ms", ("p50 at kills", "p99 at kills")),
    ("log lines per minute", ("log lines",)),
)
COLOURS: Final = ("#1f5fa8", "#d9822b", "#5a8f3c")
KILLS: Final = {
    "leader": "#b5473c",
    "coordinator": "#8c6d31",
    "controller": "#7a4fa3",
    "member": "#8a8a8a",
}
"""The colours of lines at kills, by role."""


def draw(result: RunResult, directory: Path) -> list[Path]:
    """Draw one PNG for each group, `soak-GROUP.png`."""
    return [_draw(result, each, directory) for each in result.groups]


def _draw(result: RunResult, group: GroupResult, directory: Path) -> Path:
    figure, panels = pyplot.subplots(
        len(PANELS),
        1,
        figsize=(9, 1.7 * len(PANELS)),
        sharex=True,
        layout="constrained",
    )
    for axes, (label, names) in zip(panels, PANELS, strict=True):
        _draw_kills(axes, result)
        for name, ink in zip(names, COLOURS, strict=False):
            _draw_line(axes, group, name, ink)
        axes.set_ylabel(label.replace(", ", ",\n"))
        if label.startswith("latency"):
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
        elif label not in ("memory, MiB", "objects"):
            axes.set_ylim(bottom=0)
        if len(names) > 1:
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        hide_spines(axes)
    panels[-1].set_xlabel("hours")
    figure.suptitle(f"{group.name}; lines: kills of " + _legend(result))
    return save(figure, directory / f"soak-{group.name}.png")


def _draw_line(axes: Axes, group: GroupResult, name: str, ink: str) -> None:
    points = group.series[name]
    at = [hours for hours, _ in points]
    values = [value for _, value in points]
    axes.plot(at, values, color=ink, linewidth=1, marker=".", markersize=3, label=name)


def _draw_kills(axes: Axes, result: RunResult) -> None:
    for role, seconds in result.kills:
        axes.axvline(seconds / 3600, color=KILLS[role], linewidth=0.8, alpha=0.7)


def _legend(result: RunResult) -> str:
    names = {
        "#b5473c": "red",
        "#8c6d31": "brown",
        "#7a4fa3": "violet",
        "#8a8a8a": "grey",
    }
    roles: Sequence[str] = [r for r in KILLS if r in {role for role, _ in result.kills}]
    return ", ".join(f"{role} ({names[KILLS[role]]})" for role in roles)
