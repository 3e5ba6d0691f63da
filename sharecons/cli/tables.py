"""Rows for people and for programs.

    write(rows, [Column("topic"), Column("lag", right=True)], as_json=options.json)

A row is a mapping in snake case. JSON has all of it; a table shows the columns that
it is given. On a terminal that is too narrow for a table each row becomes a block of
lines, so that nothing is cut off; what goes to a file or a pipe is aligned and plain,
one line a row, however long.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ["NOTHING", "Column", "Json", "Row", "add_options", "text_of", "write"]

Json: TypeAlias = (
    "str | int | float | bool | None | Sequence[Json] | Mapping[str, Json]"
)
Row: TypeAlias = Mapping[str, Json]

NOTHING: Final = "-"
GAP: Final = "  "
NARROWEST: Final = 24
"""Characters in which a folded column can still be read."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: the row's key.
        title: what stands above it; the name in capitals if not given.
        right: numbers, to be aligned by their last digit.
        fold: long texts that may be broken into lines on a narrow terminal.
        text: what a cell shows of a value.
    """

    name: str
    title: str = ""
    right: bool = False
    fold: bool = False
    text: Callable[[Json], str] | None = None

    @property
    def heading(self) -> str:
        return self.title or self.name.upper().replace("_", "-")

    def cell(self, row: Row) -> str:
        """Give what the column shows of a row."""
        value = row.get(self.name)
        return _printable(text_of(value) if self.text is None else self.text(value))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="a list of objects")


def write(rows: Iterable[Row], columns: Sequence[Column], *, as_json: bool) -> None:
    """Write rows to stdout, as JSON or as a table."""
    rows = list(rows)
    if as_json:
        _write_json(rows)
    elif rows and sys.stdout.isatty():
        _write_on_terminal(rows, columns)
    elif rows:
        _write_plain(rows, columns)


def text_of(value: Json) -> str:
    """Show a value in a cell."""
    match value:
        case None | "" | [] | ():
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case float():
            return f"{value:.3f}".rstrip("0").rstrip(".")
        case Sequence():
            return ",".join(text_of(each) for each in value)
        case _:
            return str(value)


def _printable(text: str) -> str:
    """Make harmless what a name may hold: it is for a terminal, and of one line."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    encoding = sys.stdout.encoding or "ascii"
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def _write_json(rows: Sequence[Row]) -> None:
    import json

    # One object a line: for programs, and for the eye and grep as well.
    lines = ",\n ".join(json.dumps(row) for row in rows)
    sys.stdout.write(f"[{lines}]\n")


def _write_plain(rows: Sequence[Row], columns: Sequence[Column]) -> None:
    table = [[column.heading for column in columns]]
    table += [[column.cell(row) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(columns))]
    for line in table:
        cells = [
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        ]
        sys.stdout.write(GAP.join(cells).rstrip() + "\n")


def _write_on_terminal(rows: Sequence[Row], columns: Sequence[Column]) -> None:
    # A third of what a command takes to start; pipes and JSON do without.
    from rich.cells import cell_len
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    widths = {
        column.name: max(
            cell_len(column.heading), *(cell_len(column.cell(row)) for row in rows)
        )
        for column in columns
    }
    needed = len(GAP) * (len(columns) - 1) + sum(
        min(widths[column.name], NARROWEST) if column.fold else widths[column.name]
        for column in columns
    )
    if needed <= console.width:
        console.print(_table(rows, columns, widths))
    else:
        _write_blocks(rows, columns)


def _table(
    rows: Sequence[Row], columns: Sequence[Column], widths: Mapping[str, int]
) -> "object":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, len(GAP), 0, 0))
    for column in columns:
        table.add_column(
            column.heading,
            justify="right" if column.right else "left",
            overflow="fold",
            no_wrap=not column.fold,
            min_width=None if column.fold else widths[column.name],
            header_style="bold",
        )
    for row in rows:
        table.add_row(*(column.cell(row) for column in columns))
    return table


def _write_blocks(rows: Sequence[Row], columns: Sequence[Column]) -> None:
    width = max(len(column.heading) for column in columns)
    for number, row in enumerate(rows):
        if number:
            sys.stdout.write("\n")
        for column in columns:
            sys.stdout.write(f"{column.heading:<{width}}{GAP}{column.cell(row)}\n")
