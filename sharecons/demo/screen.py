"""The demo as a picture in a terminal, drawn again ten times a second.

Only the terminal's own sixteen colours: they are readable on dark and on light.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import ClassVar, Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sharecons.demo.job_tracker import Event, Fate, Ledger, Tally, What
from sharecons.demo.messages import account, closing, sentence
from sharecons.demo.plan import HANDS

__all__ = ["Screen", "accounts", "picture"]

WIDEST: Final = 110
EVENTS: Final = 8
OTHER_LINES: Final = 12
"""Lines of the picture beside consumers and events."""

TIMES: Final = "\N{MULTIPLICATION SIGN}"
SLOT: Final = 7
ROOMY: Final = 100
"""Columns from which on there is room for bars of length BAR."""
BAR: Final = 36
STUMBLE: Final = 1.2
"""Seconds for which a consumer that failed is shown as one that did."""

COLOURS: Final = {
    Fate.ACCEPTED: "green",
    Fate.REJECTED: "magenta",
    Fate.ARCHIVED: "red",
    Fate.SAID: "cyan",
    Fate.HELD: "cyan",
    Fate.WAITING: "blue",
}
EVENT_COLOURS: Final = {
    What.FAILED: "yellow",
    What.AGAIN: "cyan",
    What.KILLED: "bold red",
    What.REJECTED: "magenta",
    What.ARCHIVED: "red",
    What.LATE: "yellow",
}


class Screen:
    """Shows the ledger as it is at each look."""

    interval: ClassVar[float] = 0.1

    def __init__(self, console: Console) -> None:
        self._console = console
        self._title = ""
        self._live = Live(console=console, auto_refresh=False, redirect_stderr=False)

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

    def opened(self, title: str) -> None:
        self._title = title

    def look(self, ledger: Ledger, now: float) -> None:
        width = min(self._console.width, WIDEST)
        drawn = picture(ledger, now, self._title, width, self._console.height)
        self._live.update(drawn, refresh=True)

    def closed(self, ledger: Ledger, now: float, *, interrupted: bool) -> None:
        width = min(self._console.width, WIDEST)
        self._console.print(accounts(ledger, now, width, interrupted=interrupted))


def picture(
    ledger: Ledger, now: float, title: str, width: int, height: int = 24
) -> RenderableType:
    """Draw the whole of it, for a terminal of so many columns and lines."""
    room = min(EVENTS, max(1, height - len(ledger.tallies) - OTHER_LINES))
    return Group(
        _head(title, now, width),
        _framed("jobs", _jobs(ledger, width - 4), width),
        _framed("consumers", _consumers(ledger, now, width), width),
        _framed("what happened", _happened(ledger.events[-room:], room), width),
    )


def accounts(
    ledger: Ledger, now: float, width: int, *, interrupted: bool
) -> RenderableType:
    """Draw the closing account, and what is to be said of it."""
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(justify="left", no_wrap=True)
    table.add_column(justify="right", style="bold", no_wrap=True)
    table.add_column(ratio=1)
    for what, number, made_of in account(ledger.sums()):
        table.add_row(what, str(number), made_of)
    right = not interrupted and not ledger.complaints()
    said = closing(ledger, now, interrupted=interrupted)
    verdict = Text("\n".join(said), style="bold green" if right else "bold red")
    return _framed("the account", Group(table, Text(), verdict), width)


def _head(title: str, now: float, width: int) -> RenderableType:
    head = Table.grid()
    head.add_column(width=width - 11, no_wrap=True, overflow="ellipsis")
    head.add_column(width=9, justify="right")
    head.add_row(Text.assemble((" sharecons demo  ", "bold"), title), f"{now:.1f} s")
    return head


def _framed(title: str, content: RenderableType, width: int) -> RenderableType:
    return Panel(content, title=f"[bold]{title}[/]", title_align="left", width=width)


def _jobs(ledger: Ledger, width: int) -> RenderableType:
    counts = {fate: ledger.count(fate) for fate in COLOURS}
    counts[Fate.HELD] += counts.pop(Fate.SAID)
    legend = Text()
    for fate, count in counts.items():
        if count or fate is not Fate.ARCHIVED:
            legend.append("■ ", style=COLOURS[fate])
            legend.append(f"{fate.value} {count}   ")
    legend.append("· ", style="bright_black")
    legend.append(f"to come {ledger.expected - len(ledger.jobs)}")
    return Group(_bar(ledger, counts, width), legend)


def _bar(ledger: Ledger, counts: dict[Fate, int], width: int) -> Text:
    share = f"{ledger.done:>5} of {ledger.expected}"
    room = width - len(share)
    bar, drawn, before = Text(no_wrap=True), 0, 0
    for fate, count in counts.items():
        before += count
        end = room * before // max(ledger.expected, 1)
        bar.append("█" * (end - drawn), style=COLOURS[fate])
        drawn = end
    bar.append("░" * (room - drawn), style="bright_black")
    bar.append(share, style="bold")
    return bar


def _consumers(ledger: Ledger, now: float, width: int) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bright_black")
    table.add_column("")
    table.add_column("state", min_width=9, no_wrap=True)
    table.add_column(f"job {TIMES} delivery", min_width=HANDS * SLOT, no_wrap=True)
    for heading in ("again", "released", "accepted"):
        table.add_column(heading, justify="right")
    most = max(tally.accepted for tally in ledger.tallies.values())
    for name, tally in ledger.tallies.items():
        cells = [Text(name, style="bold"), _state(tally, now), _held(ledger, tally)]
        cells += map(Text, map(str, (tally.again, tally.released, tally.accepted)))
        length = BAR * tally.accepted // max(most, 1)
        cells += [Text("■" * length, style="green")] * (width >= ROOMY)
        table.add_row(*cells)
    return table


def _state(tally: Tally, now: float) -> Text:
    if tally.killed_at is not None:
        return Text("✖ killed", style="bold red")
    if tally.failed_at is not None and now - tally.failed_at < STUMBLE:
        return Text("▲ failed", style="yellow")
    if not tally.deliveries:
        return Text("○ joining", style="bright_black")
    if not tally.held:
        return Text("○ idle", style="bright_black")
    return Text("● working", style="green")


def _held(ledger: Ledger, tally: Tally) -> Text:
    held = Text()
    for number in tally.held[:HANDS]:
        count = ledger.jobs[number].delivery_count
        again = f"{TIMES}{count}" if count > 1 else ""
        style = "bold cyan" if again else "cyan"
        held.append(f"{number}{again}".ljust(SLOT), style=style)
    return held


def _happened(events: Sequence[Event], room: int) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="bright_black", no_wrap=True)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(no_wrap=True, overflow="ellipsis")
    for event in events:
        colour = EVENT_COLOURS[event.what]
        who = event.who or "broker"
        table.add_row(f"{event.at:.1f} s", who, Text(sentence(event), style=colour))
    for _ in range(room - len(events)):
        table.add_row("", "", "")
    return table
