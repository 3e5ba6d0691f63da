"""`sharecons groups inspect --watch`: a live screen, or lines without a terminal."""

import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING

import anyio

from sharecons.cli import inspect_text, output
from sharecons.cli.exit_codes import ExitCode, write_errors
from sharecons.errors import ConnectionFailedError, RequestTimedOutError
from sharecons.inspection import GroupInspection

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["watch"]

PROGRAM = "sharecons groups inspect"

InspectOnce = Callable[[GroupInspection | None], Awaitable[GroupInspection]]


async def watch(
    inspect_once: InspectOnce, interval: float, *, as_json: bool
) -> ExitCode:
    """Inspect every `interval` seconds until Ctrl-C or until the group is deleted.

    After the first inspection, connection errors and timeouts do not end the loop.
    """
    if as_json or not sys.stdout.isatty():
        show: Callable[[GroupInspection], None] = (
            _write_json if as_json else _write_lines
        )
        return await _repeat(inspect_once, interval, show)
    from rich.console import Console
    from rich.live import Live

    console = Console(
        file=output.rich_stdout(), highlight=False, markup=False, emoji=False
    )
    with Live(
        console=console,
        screen=True,
        auto_refresh=False,
        # Rich's replacement of stdout has no encoding, so bars would be in ASCII.
        redirect_stdout=False,
    ) as live:

        def update(inspection: GroupInspection) -> None:
            live.update(
                _draw_screen(inspection, interval, console.height), refresh=True
            )

        return await _repeat(inspect_once, interval, update)


async def _repeat(
    inspect_once: InspectOnce, interval: float, show: Callable[[GroupInspection], None]
) -> ExitCode:
    previous: GroupInspection | None = None
    while True:
        try:
            previous = await inspect_once(previous)
        except (ConnectionFailedError, RequestTimedOutError) as error:
            if previous is None:
                raise
            write_errors(PROGRAM, [error])
        else:
            show(previous)
        await anyio.sleep(interval)


def _write_json(group: GroupInspection) -> None:
    for each in inspect_text.objects(group):
        output.write_json({"at": round(group.at, 3), **each})
    output.flush()


def _write_lines(group: GroupInspection) -> None:
    at = datetime.fromtimestamp(group.at).strftime("%H:%M:%S")
    columns = inspect_text.columns(group)[2:-1]
    for row in inspect_text.rows(group):
        cells = [f"{column.name}={column.cell(row)}" for column in columns]
        where = f"{row['topic']}-{row['partition']}"
        output.write_line(f"{at} {where} {' '.join(cells)}")
    for line in inspect_text.remarks(group):
        output.write_line(f"{at} {line}")
    output.flush()


def _draw_screen(
    group: GroupInspection, interval: float, height: int
) -> "RenderableType":
    """Return one screen; it counts the partitions that do not fit."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = inspect_text.rows(group)
    remarks = inspect_text.remarks(group)
    visible_rows = max(3, height - 7 - min(len(remarks), height // 3))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    topics = {key.topic for key in group.partitions.found}
    columns = inspect_text.columns(group)[1 if len(topics) == 1 else 0 :]
    for column in columns:
        table.add_column(
            column.heading,
            justify="right" if column.align_right else "left",
            no_wrap=True,
            header_style="bold",
        )
    for row in rows[:visible_rows]:
        table.add_row(*(Text(column.cell(row)) for column in columns))
    at = datetime.fromtimestamp(group.at).strftime("%H:%M:%S")
    more = (
        f"… and {len(rows) - visible_rows} more partitions"
        if len(rows) > visible_rows
        else ""
    )
    lines = [Text(line, no_wrap=True, overflow="ellipsis") for line in remarks]
    title = inspect_text.heading(group)
    return Group(
        Text(f"{at}, every {interval:g} s. {title}", style="bold"),
        Text(f"topic {topics.pop()}" if len(topics) == 1 else ""),
        table,
        Text(more),
        *lines[: height // 3],
        Text("\n".join(inspect_text.legend(group)), style="dim"),
    )
