"""The live view of the demo on a terminal, drawn ten times per second.

It uses only the sixteen colours of the terminal's theme, which are readable on dark and
on light backgrounds.
"""

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import ClassVar, Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sharecons.demo.job_tracker import (
    ConsumerStats,
    Event,
    EventKind,
    JobState,
    JobTracker,
)
from sharecons.demo.messages import closing_lines, describe_event, summary_rows
from sharecons.demo.plan import CONCURRENT_JOBS

__all__ = ["Screen", "draw_progress", "draw_summary"]

MAX_WIDTH: Final = 110
MAX_EVENTS: Final = 8
OTHER_LINES: Final = 12
"""Lines of the view other than consumers and events."""

TIMES: Final = "\N{MULTIPLICATION SIGN}"
JOB_WIDTH: Final = 7
WIDTH_WITH_BARS: Final = 100
"""Minimum width in which bars of BAR_LENGTH fit."""
BAR_LENGTH: Final = 30
FAILED_SECONDS: Final = 1.2
"""Seconds for which a consumer is shown as failed after a failure."""

COLOURS: Final = {
    JobState.ACCEPTED: "green",
    JobState.REJECTED: "magenta",
    JobState.ARCHIVED: "red",
    JobState.UNCONFIRMED: "cyan",
    JobState.ACQUIRED: "cyan",
    JobState.WAITING: "blue",
}
EVENT_COLOURS: Final = {
    EventKind.FAILED: "yellow",
    EventKind.REDELIVERED: "cyan",
    EventKind.KILLED: "bold red",
    EventKind.REJECTED: "magenta",
    EventKind.ARCHIVED: "red",
    EventKind.LOCK_EXPIRED: "yellow",
}


class Screen:
    """Draws the current state at each update, and the summary at the end."""

    interval: ClassVar[float] = 0.1

    def __init__(self, console: Console) -> None:
        self._console = console
        self._title = ""
        # On the same terminal, lines written to stderr appear above the view.
        redirect = sys.stderr.isatty()
        self._live = Live(console=console, auto_refresh=False, redirect_stderr=redirect)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.stop()

    def open(self, title: str) -> None:
        self._title = title

    def update(self, tracker: JobTracker, now: float) -> None:
        width = min(self._console.width, MAX_WIDTH)
        drawn = draw_progress(tracker, now, self._title, width, self._console.height)
        self._live.update(drawn, refresh=True)

    def close(self, tracker: JobTracker, now: float, *, interrupted: bool) -> None:
        width = min(self._console.width, MAX_WIDTH)
        self._console.print(draw_summary(tracker, now, width, interrupted=interrupted))


def draw_progress(
    tracker: JobTracker, now: float, title: str, width: int, height: int = 24
) -> RenderableType:
    """Draw the live view for a terminal of this width and height."""
    room = min(MAX_EVENTS, max(1, height - len(tracker.consumers) - OTHER_LINES))
    return Group(
        _draw_head(title, now, width),
        _draw_panel("jobs", _draw_jobs(tracker, width - 4), width),
        _draw_panel("consumers", _draw_consumers(tracker, now, width), width),
        _draw_panel("events", _draw_events(tracker.events[-room:], room), width),
    )


def draw_summary(
    tracker: JobTracker, now: float, width: int, *, interrupted: bool
) -> RenderableType:
    """Draw the summary and the result of the final check."""
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(justify="left", no_wrap=True)
    table.add_column(justify="right", style="bold", no_wrap=True)
    table.add_column(ratio=1)
    for what, number, parts in summary_rows(tracker.totals()):
        table.add_row(what, str(number), parts)
    success = not interrupted and not tracker.discrepancies()
    lines = closing_lines(tracker, now, interrupted=interrupted)
    verdict = Text("\n".join(lines), style="bold green" if success else "bold red")
    return _draw_panel("summary", Group(table, Text(), verdict), width)


def _draw_head(title: str, now: float, width: int) -> RenderableType:
    head = Table.grid()
    head.add_column(width=width - 11, no_wrap=True, overflow="ellipsis")
    head.add_column(width=9, justify="right")
    head.add_row(Text.assemble((" sharecons demo  ", "bold"), title), f"{now:.1f} s")
    return head


def _draw_panel(title: str, content: RenderableType, width: int) -> RenderableType:
    return Panel(content, title=f"[bold]{title}[/]", title_align="left", width=width)


def _draw_jobs(tracker: JobTracker, width: int) -> RenderableType:
    counts = {fate: tracker.count(fate) for fate in COLOURS}
    counts[JobState.ACQUIRED] += counts.pop(JobState.UNCONFIRMED)
    legend = Text()
    for fate, count in counts.items():
        if count or fate is not JobState.ARCHIVED:
            legend.append("■ ", style=COLOURS[fate])
            legend.append(f"{fate.value} {count}   ")
    legend.append("· ", style="bright_black")
    legend.append(f"to send {tracker.expected - len(tracker.jobs)}")
    return Group(_draw_bar(tracker, counts, width), legend)


def _draw_bar(tracker: JobTracker, counts: dict[JobState, int], width: int) -> Text:
    share = f"{tracker.done_count:>5} of {tracker.expected}"
    room = width - len(share)
    bar, drawn, before = Text(no_wrap=True), 0, 0
    for fate, count in counts.items():
        before += count
        end = room * before // max(tracker.expected, 1)
        bar.append("█" * (end - drawn), style=COLOURS[fate])
        drawn = end
    bar.append("░" * (room - drawn), style="bright_black")
    bar.append(share, style="bold")
    return bar


def _draw_consumers(tracker: JobTracker, now: float, width: int) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bright_black")
    table.add_column("")
    table.add_column("state", min_width=9, no_wrap=True)
    table.add_column(
        f"job {TIMES} delivery", min_width=CONCURRENT_JOBS * JOB_WIDTH, no_wrap=True
    )
    for heading in ("redelivered", "released", "accepted"):
        table.add_column(heading, justify="right")
    most = max(stats.accepted for stats in tracker.consumers.values())
    for name, stats in tracker.consumers.items():
        cells = [
            Text(name, style="bold"),
            _draw_state(stats, now),
            _draw_acquired(tracker, stats),
        ]
        cells += map(
            Text, map(str, (stats.redelivered, stats.released, stats.accepted))
        )
        length = BAR_LENGTH * stats.accepted // max(most, 1)
        cells += [Text("■" * length, style="green")] * (width >= WIDTH_WITH_BARS)
        table.add_row(*cells)
    return table


def _draw_state(stats: ConsumerStats, now: float) -> Text:
    if stats.killed_at is not None:
        return Text("✖ killed", style="bold red")
    if stats.failed_at is not None and now - stats.failed_at < FAILED_SECONDS:
        return Text("▲ failed", style="yellow")
    if not stats.deliveries:
        return Text("○ joining", style="bright_black")
    if not stats.acquired:
        return Text("○ idle", style="bright_black")
    return Text("● working", style="green")


def _draw_acquired(tracker: JobTracker, stats: ConsumerStats) -> Text:
    held = Text()
    for number in stats.acquired[:CONCURRENT_JOBS]:
        count = tracker.jobs[number].delivery_count
        again = f"{TIMES}{count}" if count > 1 else ""
        style = "bold cyan" if again else "cyan"
        held.append(f"{number}{again}".ljust(JOB_WIDTH), style=style)
    return held


def _draw_events(events: Sequence[Event], room: int) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="bright_black", no_wrap=True)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(no_wrap=True, overflow="ellipsis")
    for event in events:
        colour = EVENT_COLOURS[event.kind]
        who = event.consumer or "broker"
        table.add_row(
            f"{event.time:.1f} s", who, Text(describe_event(event), style=colour)
        )
    for _ in range(room - len(events)):
        table.add_row("", "", "")
    return table
