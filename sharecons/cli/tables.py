"""Rows for people and for programs.

    write(rows, [Column("topic"), Column("lag", right=True)], as_json=options.json)

A row is a mapping in snake case. JSON has all of it; a table shows the columns that
it is given. What goes to a file or a pipe is aligned and plain, one line a row, however
long; `terminal` sees to it that on a terminal nothing is cut off or wrapped by it.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence

from sharecons.cli import output
from sharecons.cli.columns import GAP, NOTHING, Column, Row, text_of
from sharecons.escaping import Json, json_text

__all__ = ["GAP", "NOTHING", "Column", "Json", "Row", "add_options", "text_of", "write"]


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


def _write_json(rows: Sequence[Row]) -> None:
    # One object a line: for programs, and for the eye and grep as well.
    lines = ",\n ".join(json_text(row) for row in rows)
    output.write_raw(f"[{lines}]\n")


def _write_plain(rows: Sequence[Row], columns: Sequence[Column]) -> None:
    table = [[column.heading for column in columns]]
    table += [[column.cell(row) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(columns))]
    for line in table:
        cells = [
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        ]
        output.write_line(GAP.join(cells).rstrip())
