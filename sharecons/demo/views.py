"""The views: a picture on a terminal, or lines of text."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Final, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sharecons.demo.jobs import Jobs, State, WorkerStats

__all__ = ["LineView", "ScreenView", "View", "draw"]

PROGRESS_INTERVAL: Final = 2.0  # seconds between two lines about the progress
MAX_WIDTH: Final = 110
MAX_EVENTS: Final = 8
OTHER_LINES: Final = 12  # neither of workers nor of events
FAILED_SECONDS: Final = 1.2  # for which a worker is shown as failed
COLOURS: Final = {  # of the terminal's theme: readable on dark and light backgrounds
    State.DONE: "green",
    State.DEAD: "magenta",
    State.PROCESSING: "cyan",
    State.WAITING: "blue",
}


class LineView:
    """Writes lines: each event, and the progress every two seconds."""

    def __init__(self, title: str, write: Callable[[str], object]) -> None:
        self.live = nullcontext()
        self._write = write
        self._event_count = 0
        self._next_progress = 0.0
        self._title = title

    def update(self, jobs: Jobs, now: float) -> None:
        if not self._next_progress:
            self._write(self._title)
        for event in jobs.events[self._event_count :]:
            self._write(f"{event.seconds:6.1f} s  {event.who:<7}{event.what}")
        self._event_count = len(jobs.events)
        if now >= self._next_progress:
            self._next_progress = now + PROGRESS_INTERVAL
            count = jobs.count()
            states = ", ".join(f"{state.value} {count[state]}" for state in State)
            self._write(f"{now:6.1f} s  {states}")

    def close(self, jobs: Jobs, verdict: Sequence[str]) -> None:
        for line in ("", *jobs.summary(), *verdict):
            self._write(line)


class ScreenView:
    """Draws a picture."""

    def __init__(self, title: str, stdout: TextIO) -> None:
        self._title = title
        self._console = Console(file=stdout)
        self.live = Live(console=self._console, auto_refresh=False)

    def update(self, jobs: Jobs, now: float) -> None:
        size = self._console.size
        picture = draw(jobs, now, self._title, min(size.width, MAX_WIDTH), size.height)
        self.live.update(picture, refresh=True)

    def close(self, jobs: Jobs, verdict: Sequence[str]) -> None:
        lines = "\n".join((*jobs.summary(), "", *verdict))
        width = min(self._console.width, MAX_WIDTH)
        self._console.print(_panel("summary", Text(lines), width))


View = LineView | ScreenView


def draw(jobs: Jobs, now: float, title: str, width: int, height: int) -> RenderableType:
    """Draw the state of the demo for a terminal of this width and height."""
    head = Table.grid()
    head.add_column(width=width - 11, no_wrap=True, overflow="ellipsis")
    head.add_column(width=9, justify="right")
    head.add_row(Text.assemble((" sharecons demo  ", "bold"), title), f"{now:.1f} s")
    room = min(MAX_EVENTS, max(1, height - len(jobs.workers) - OTHER_LINES))
    return Group(
        head,
        _panel("jobs", _draw_jobs(jobs, width - 4), width),
        _panel("workers", _draw_workers(jobs, now), width),
        _panel("events", _draw_events(jobs, room), width),
    )


def _panel(title: str, content: RenderableType, width: int) -> RenderableType:
    return Panel(content, title=f"[bold]{title}[/]", title_align="left", width=width)


def _draw_jobs(jobs: Jobs, width: int) -> RenderableType:
    count, bar, legend = jobs.count(), Text(no_wrap=True), Text()
    done = f"{count[State.DONE]:>5} of {jobs.total}"
    until, drawn = 0, 0
    for state, colour in COLOURS.items():
        until += count[state]
        end = (width - len(done)) * until // jobs.total
        bar.append("█" * (end - drawn), style=colour)
        drawn = end
        legend.append("■ ", style=colour).append(f"{state.value} {count[state]}   ")
    return Group(bar.append(done, style="bold"), legend)


def _draw_workers(jobs: Jobs, now: float) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bright_black")
    table.add_column("")
    table.add_column("state", min_width=9, no_wrap=True)
    table.add_column("jobs", min_width=20, no_wrap=True)
    for heading in ("failed", "redelivered", "done"):
        table.add_column(heading, justify="right")
    for name, stats in jobs.workers.items():
        numbers = " ".join(f"{number:<4}" for number in stats.jobs)
        counts = map(str, (stats.failed, stats.redelivered, stats.done))
        table.add_row(name, _draw_state(stats, now), numbers, *counts)
    return table


def _draw_state(stats: WorkerStats, now: float) -> Text:
    if stats.is_killed:
        return Text("✖ killed", style="bold red")
    if now - stats.failed_at < FAILED_SECONDS:
        return Text("▲ failed", style="yellow")
    if stats.jobs:
        return Text("● working", style="green")
    return Text("○ idle" if stats.done else "○ joining", style="bright_black")


def _draw_events(jobs: Jobs, room: int) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="bright_black", no_wrap=True)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(no_wrap=True, overflow="ellipsis")
    events = jobs.events[-room:]
    for event in events:
        what = Text(event.what, style=event.colour)
        table.add_row(f"{event.seconds:.1f} s", event.who, what)
    for _ in range(room - len(events)):
        table.add_row("", "", "")
    return table
