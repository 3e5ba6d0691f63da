"""The pages of groups: all of them, and one."""

from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Final, NamedTuple

import anyio
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, StreamingResponse

from sharecons.dashboard.charts import Chart, chart_svg, small_svg
from sharecons.dashboard.history import History
from sharecons.dashboard.live import Live
from sharecons.dashboard.rendering import PageNumber, Renderer, page_of
from sharecons.dashboard.rows import GroupRow, topic_rows, worst_first
from sharecons.dashboard.workers import Workers
from sharecons.escaping import escape
from sharecons.inspection.bar_svg import bar_svg, key_svg
from sharecons.inspection.offset_bars import OffsetBar, offset_bars_of
from sharecons.inspection.picture import scale_of, styles_of

__all__ = ["GroupPages"]

GROUPS: Final = 50
PARTITIONS: Final = 50
"""Rows of one page."""

KEEP_ALIVE: Final = 15.0
"""Seconds between comments on a quiet stream, by which a broken one is noticed."""


class GroupPages:
    """The overview, a group, and the events that say when they have changed."""

    def __init__(self, live: Live, workers: Workers, renderer: Renderer) -> None:
        self._live = live
        self._workers = workers
        self._renderer = renderer

    async def overview(self, request: Request) -> HTMLResponse:
        not_ready = self._workers.not_ready()
        found = worst_first(self._live.rows, not_ready)
        if words := request.query_params.get("find", "").casefold():
            found = [row for row in found if words in row.group_id.casefold()]
        page, rows = page_of(request, found, GROUPS)
        return self._renderer.response(
            request,
            "overview.html",
            rows=rows,
            page=page,
            found=len(found),
            not_ready=not_ready,
        )

    async def group(self, request: Request) -> HTMLResponse:
        group_id = request.query_params.get("id", "")
        row = self._live.rows.get(group_id)
        if row is None:
            return self._renderer.response(
                request, "no_group.html", 404, group_id=group_id
            )
        self._live.open(group_id)
        page, bars, legend, scale = _drawn(request, row, self._live.history)
        return self._renderer.response(
            request,
            "group.html",
            row=row,
            topics=topic_rows(row, self._live.history, self._live.collected.at),
            workers=self._workers.by_group().get(group_id, []),
            charts=_charts(self._live.history, group_id),
            bars=bars,
            legend=legend,
            scale=scale,
            page=page,
        )

    async def events(self, request: Request) -> StreamingResponse:
        """Send the version whenever it changes: pages load their content again."""

        async def stream() -> AsyncIterator[str]:
            version = self._live.version
            yield f"data: {version}\n\n"
            while not self._live.is_closed:
                with anyio.move_on_after(KEEP_ALIVE) as scope:
                    version = await self._live.wait_for_change(version)
                yield ": \n\n" if scope.cancelled_caught else f"data: {version}\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream")


class Drawn(NamedTuple):
    """A partition, its offsets, and a line of its lag."""

    bar: OffsetBar
    offsets: Markup
    lag: Markup


def _drawn(
    request: Request, row: GroupRow, history: History
) -> tuple[PageNumber, list[Drawn], list[tuple[Markup, str]], str]:
    """Return a page of partitions, the legend and the scale of their offsets."""
    if row.inspection is None:
        return PageNumber(), [], [], ""
    found = offset_bars_of(row.inspection)
    if request.query_params.get("order") == "lag":
        found = tuple(sorted(found, key=lambda bar: -(bar.partition.lag or 0)))
    page, shown = page_of(request, found, PARTITIONS)
    if not shown:
        return page, [], [], ""
    limit = row.inspection.facts.delivery_limit
    drawn = [
        Drawn(bar, Markup(bar_svg(bar, limit)), _lag_line(history, row.group_id, bar))
        for bar in shown
    ]
    styles = styles_of(row.inspection, found)
    legend = [(Markup(key_svg(each)), each.label) for each in styles]
    return page, drawn, legend, scale_of(found)


def _lag_line(history: History, group_id: str, bar: OffsetBar) -> Markup:
    series = history.partitions.get((group_id, bar.key))
    points = series.points if series else []
    times, lags = [point.at for point in points], [point.lag for point in points]
    return Markup(small_svg(Chart("lag", times, lags)))


def _charts(history: History, group_id: str) -> list[Markup]:
    """Return a line of the lag and of the rate for each topic."""
    charts: list[Chart] = []
    for topic, series in sorted(history.topics.get(group_id, {}).items()):
        name, points = escape(topic), series.points
        times = [point.at for point in points]
        charts.append(Chart(f"lag of {name}", times, [each.lag for each in points]))
        rates = [
            (after.settled - before.settled) / max(after.at - before.at, 1e-3)
            for before, after in pairwise(points)
        ]
        charts.append(Chart(f"settled in {name}", times[1:], rates, "/s"))
    return [Markup(chart_svg(each)) for each in charts]
