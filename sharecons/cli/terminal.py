"""Tables as they fit the terminal.

If a table is too wide, what its rows have in common (their group, their topic) becomes
a line above them; if it still is, each row becomes a block with a line for each column.
Lists are broken at their commas.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from sharecons.cli import output
from sharecons.cli.columns import GAP, Column, Row

__all__ = ["write"]

NARROWEST: Final = 24
"""Characters in which a list can still be read."""

_PIECES: Final = re.compile(r"[^,;]*[,;]?")


def write(rows: Sequence[Row], columns: Sequence[Column]) -> None:
    """Write rows to the terminal that stdout is."""
    console = Console(
        file=output.terminal(), highlight=False, markup=False, emoji=False
    )
    bare = [column for column in columns if not column.head]
    if _fits(console, rows, columns):
        console.print(_table(console, rows, columns))
    elif len(bare) < len(columns) and _fits(console, rows, bare):
        heads = [column for column in columns if column.head]
        _write_sections(console, rows, heads, bare)
    else:
        _write_blocks(console, rows, columns)


def _widths(rows: Sequence[Row], columns: Sequence[Column]) -> dict[str, int]:
    return {
        column.name: max(
            cell_len(column.heading), *(cell_len(column.cell(row)) for row in rows)
        )
        for column in columns
    }


def _fits(console: Console, rows: Sequence[Row], columns: Sequence[Column]) -> bool:
    return sum(_fixed(rows, columns)) + _folded(rows, columns) <= console.width


def _fixed(rows: Sequence[Row], columns: Sequence[Column]) -> list[int]:
    """Give what cannot be narrower: columns that do not fold, and gaps."""
    widths = _widths(rows, columns)
    gaps = len(GAP) * (len(columns) - 1)
    return [gaps, *(widths[column.name] for column in columns if not column.fold)]


def _folded(rows: Sequence[Row], columns: Sequence[Column]) -> int:
    widths = _widths(rows, columns)
    return sum(min(widths[each.name], NARROWEST) for each in columns if each.fold)


def _room(
    console: Console, rows: Sequence[Row], columns: Sequence[Column]
) -> Mapping[str, int]:
    """Share out what is left among the columns that fold, the narrowest first."""
    widths = _widths(rows, columns)
    left = console.width - sum(_fixed(rows, columns))
    folding = sorted((widths[each.name], each.name) for each in columns if each.fold)
    room: dict[str, int] = {}
    for number, (width, name) in enumerate(folding):
        room[name] = min(width, left // (len(folding) - number))
        left -= room[name]
    return room


def _table(console: Console, rows: Sequence[Row], columns: Sequence[Column]) -> Table:
    room = _room(console, rows, columns)
    table = Table(box=None, pad_edge=False, padding=(0, len(GAP), 0, 0))
    for column in columns:
        justify: JustifyMethod = "right" if column.right else "left"
        table.add_column(
            Text(column.heading, "bold", justify=justify), justify=justify, no_wrap=True
        )
    for row in rows:
        cells = [
            "\n".join(_broken(column.cell(row), room.get(column.name)))
            for column in columns
        ]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _write_sections(
    console: Console,
    rows: Sequence[Row],
    heads: Sequence[Column],
    columns: Sequence[Column],
) -> None:
    def head_of(row: Row) -> list[str]:
        return [f"{column.heading} {column.cell(row)}" for column in heads]

    for number, (head, section) in enumerate(groupby(rows, head_of)):
        if number:
            console.print()
        for line in head:
            console.print(Text(line, "bold"), soft_wrap=True)
        console.print(_table(console, list(section), columns))


def _write_blocks(
    console: Console, rows: Sequence[Row], columns: Sequence[Column]
) -> None:
    width = max(len(column.heading) for column in columns)
    for number, row in enumerate(rows):
        if number:
            console.print()
        for column in columns:
            room = console.width - width - len(GAP) if column.fold else None
            first, *more = _broken(column.cell(row), room)
            line = Text.assemble((f"{column.heading:<{width}}", "bold"), GAP, first)
            console.print(line, soft_wrap=True)
            for rest in more:
                console.print(Text(" " * (width + len(GAP)) + rest), soft_wrap=True)


def _broken(text: str, width: int | None) -> list[str]:
    """Break a list into lines, behind its commas."""
    if width is None or cell_len(text) <= width:
        return [text]
    lines = [""]
    for piece in _PIECES.findall(text):
        if lines[-1] and cell_len(lines[-1] + piece) > width:
            lines.append("")
        lines[-1] += piece
    return lines
