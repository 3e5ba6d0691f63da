"""Rows for people and for programs.

    write(rows, [Column("topic"), Column("lag", right=True)], as_json=options.json)

A row is a mapping in snake case. JSON has all of it; a table shows the columns that
it is given. What goes to a file or a pipe is aligned and plain, one line a row, however
long; `terminal` sees to it that on a terminal nothing is cut off or wrapped by it.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ["GAP", "NOTHING", "Column", "Json", "Row", "add_options", "text_of", "write"]

Json: TypeAlias = (
    "str | int | float | bool | None | Sequence[Json] | Mapping[str, Json]"
)
Row: TypeAlias = Mapping[str, Json]

NOTHING: Final = "-"
GAP: Final = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: the row's key.
        title: what stands above it; the name in capitals if not given.
        right: numbers, to be aligned by their last digit.
        fold: lists that may be broken into lines on a narrow terminal.
        head: what rows have in common; where the terminal is narrow, a line above them.
        text: what a cell shows of a value.
    """

    name: str
    title: str = ""
    right: bool = False
    fold: bool = False
    head: bool = False
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
        # A third of what a command takes to start; pipes and JSON do without.
        from sharecons.cli import terminal

        terminal.write(rows, columns)
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
