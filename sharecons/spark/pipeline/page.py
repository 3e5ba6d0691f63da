"""Makes the page of a run: its figures, its plots, and tables, as one HTML file.

Rule: no file, no clock and no Spark here. All text of others (reasons, names, paths) is
escaped. The page loads nothing: no script, no font, no style sheet.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape as escape_html
from itertools import groupby
from typing import Final

from sharecons.escaping import escape
from sharecons.spark.pipeline.page_style import STYLE
from sharecons.spark.pipeline.plots import Line, Plot, draw_plot, format_number
from sharecons.spark.pipeline.points import Figures, Point, figures_of, points_of
from sharecons.spark.pipeline.stats import BatchStats

__all__ = ["make_page"]

MAX_REASONS: Final = 20
MAX_RUNS: Final = 20
MAX_BATCHES: Final = 20
"""Rows of the tables; all else is in the plots and the figures."""

PLOTS: Final = (
    Plot(
        title="Records per second",
        lines=(Line("records", "a", lambda point: point.records / point.seconds),),
    ),
    Plot(
        title="Records that wait",
        lines=(
            Line("lag of the group", "a", lambda point: point.lag),
            Line("backlog of the ledger", "b", lambda point: point.backlog),
        ),
        min_step=1,
    ),
    Plot(
        title="Latency, in seconds",
        lines=(
            Line("p50", "a", lambda point: point.latency_p50),
            Line("p99", "b", lambda point: point.latency_p99),
        ),
    ),
    Plot(
        title="Seconds to write a batch",
        lines=(Line("slowest batch", "a", lambda point: point.writing),),
    ),
    Plot(
        title="Quarantined records",
        lines=(Line("quarantined", "b", lambda point: point.quarantined),),
        bars=True,
        min_step=1,
    ),
    Plot(
        title="Redelivered records",
        lines=(Line("redelivered", "b", lambda point: point.redelivered),),
        bars=True,
        min_step=1,
    ),
)

PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<h1>{title}</h1>
{body}</body>
</html>
"""


def make_page(
    batches: Iterable[BatchStats],
    *,
    title: str,
    made_at: datetime,
    problems: Sequence[str] = (),
) -> str:
    """Return the HTML page of one or several runs.

    Args:
        title: any text.
        made_at: the time that the page shows as its own.
        problems: why parts of the page are missing.
    """
    found = list(batches)
    figures = figures_of(found)
    parts = [f'<p class="problem">{_safe(each)}</p>\n' for each in problems]
    made = f"Made {_time(made_at)}."
    if figures is None:
        parts.append(f'<p class="about">No batch was written yet. {made}</p>\n')
    else:
        points = points_of(found)
        parts += [
            f'<p class="about">{_time(figures.since)} to {_time(figures.until)}. '
            f"{made}</p>\n",
            _figures(figures),
            _plots(points, figures.batches),
            _reasons(figures),
            _runs(found) if figures.runs > 1 else "",
            _batches(found),
        ]
    return PAGE.format(title=_safe(title), style=STYLE, body="".join(parts))


def _safe(text: str) -> str:
    return escape_html(escape(text))


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _figures(figures: Figures) -> str:
    rate = figures.records / figures.busy
    shown = [
        ("records", f"{figures.records:,}"),
        ("records per second", format_number(rate)),
        ("batches", f"{figures.batches:,}"),
        ("quarantined", _count_and_share(figures.quarantined, figures.records)),
        ("redelivered", _count_and_share(figures.redelivered, figures.records)),
        ("bytes of values", f"{format_number(figures.bytes)}B"),
        ("highest p99 latency", _seconds(figures.latency_p99)),
        ("last lag", _count(figures.lag)),
        ("last backlog", _count(figures.backlog)),
    ]
    if figures.requeued:
        shown.append(("requeued: rows now", f"{figures.requeued:,}"))
    items = "".join(
        f"<div><dt>{name}</dt><dd>{value}</dd></div>\n" for name, value in shown
    )
    return f'<dl class="figures">\n{items}</dl>\n'


def _plots(points: Sequence[Point], batches: int) -> str:
    parts = ['<div class="plots">\n']
    for plot in PLOTS:
        legend = "".join(
            f'<span class="{line.style}">{line.name}</span>' for line in plot.lines
        )
        # The title says what a single line is.
        legend = legend if len(plot.lines) > 1 else ""
        parts.append(
            f"<figure><figcaption>{escape_html(plot.title)}"
            f'<span class="legend">{legend}</span></figcaption>\n'
            f"{draw_plot(plot, points)}</figure>\n"
        )
    parts.append("</div>\n")
    about = (
        "Times are UTC. A dotted line is the start of another run. Latency is the time "
        "from a record's timestamp to its batch."
    )
    if batches > len(points):
        about += (
            f" The {len(points)} points have several of the {batches:,} batches each: "
            "their mean rate, the sums of quarantined and redelivered records, and "
            "otherwise the highest value."
        )
    return f'{"".join(parts)}<p class="about">{about}</p>\n'


def _reasons(figures: Figures) -> str:
    if not figures.quarantined:
        return ""
    shown = list(figures.reasons[:MAX_REASONS])
    # Runs of earlier versions have no reasons.
    rest = figures.quarantined - sum(count for _, count in shown)
    if rest > 0:
        shown.append(("all other reasons" if shown else "unknown reasons", rest))
    highest = max(count for _, count in shown)
    rows = "".join(
        f"<tr><td>{_safe(reason)}</td><td>{count:,}</td>"
        f'<td class="bar"><div style="width:{100 * count / highest:.1f}%"></div></td>'
        "</tr>\n"
        for reason, count in shown
    )
    return (
        '<h2>Quarantine by reason</h2>\n<div class="table"><table class="reasons">\n'
        f"<tr><th>reason</th><th>records</th><th></th></tr>\n{rows}</table></div>\n"
    )


def _runs(batches: Sequence[BatchStats]) -> str:
    """Return a table of the latest runs."""
    ordered = sorted(batches, key=lambda each: (each.run, each.at))
    runs = [
        (run, figures)
        for run, group in groupby(ordered, key=lambda each: each.run)
        if (figures := figures_of(group)) is not None
    ]
    runs.sort(key=lambda each: each[1].since, reverse=True)
    rows = [
        [
            f"<code>{_safe(run)}</code>",
            _time(each.since),
            _time(each.until),
            f"{each.batches:,}",
            f"{each.rows:,}",
            f"{each.quarantined:,}",
            f"{each.redelivered:,}",
            format_number(each.records / each.busy),
        ]
        for run, each in runs[:MAX_RUNS]
    ]
    head = ["run", "from", "to", "batches", "rows", "quarantined", "redelivered"]
    name = "Runs" if len(runs) <= MAX_RUNS else f"The latest {MAX_RUNS} runs"
    return f"<h2>{name}</h2>\n{_table([*head, 'records/s'], rows)}"


def _batches(batches: Sequence[BatchStats]) -> str:
    """Return a table of the latest batches, which the reader can open."""
    latest = sorted(batches, key=lambda each: each.at, reverse=True)[:MAX_BATCHES]
    rows = [
        [
            f"<code>{_safe(each.batch)}</code>",
            _time(each.at),
            f"{each.rows:,}",
            f"{each.quarantined:,}",
            f"{each.redelivered:,}",
            f"{each.latency_p50:.1f}",
            f"{each.latency_p99:.1f}",
            f"{each.seconds:.2f}",
        ]
        for each in latest
    ]
    head = ["batch", "at", "rows", "quarantined", "redelivered", "p50 s", "p99 s"]
    return (
        f"<details><summary>The latest batches</summary>\n"
        f"{_table([*head, 'seconds'], rows)}</details>\n"
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["".join(f"<th>{each}</th>" for each in head)]
    lines += ["".join(f"<td>{each}</td>" for each in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f'<div class="table"><table>\n{body}</table></div>\n'


def _count(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def _count_and_share(count: int, total: int) -> str:
    if not count:
        return "0"
    return f"{count:,} <small>{format_number(100 * count / total)} %</small>"


def _seconds(seconds: float | None) -> str:
    return "none" if seconds is None else f"{format_number(seconds)} s"
