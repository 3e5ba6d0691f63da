"""Rows as tables or as JSON.

    write(rows, [Column("topic"), Column("lag", right=True)], as_json=options.json)

A row is a mapping with keys in snake case. JSON contains all keys; a table shows the
given columns. In a file or a pipe, each row is one aligned line of any length. On a
terminal, `terminal` fits the table to its width, so that nothing is cut off or wrapped;
without rich, which the extra `cli` installs, it is the same as in a pipe.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence

from sharecons.cli import output
from sharecons.cli.columns import EMPTY, GAP, Column, Row, cell_text
from sharecons.cli.extras import is_installed
from sharecons.escaping import Json, json_text

__all__ = ["EMPTY", "GAP", "Column", "Json", "Row", "add_options", "cell_text", "write"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument(
        "--json", action="store_true", help="write a JSON list of objects"
    )


def write(rows: Iterable[Row], columns: Sequence[Column], *, as_json: bool) -> None:
    """Write rows to stdout, as JSON or as a table."""
    rows = list(rows)
    if as_json:
        _write_json(rows)
    elif rows and sys.stdout.isatty() and is_installed("rich"):
        # Imported late: rich takes a third of a command's startup time.
        from sharecons.cli import terminal

        terminal.write(rows, columns)
    elif rows:
        _write_plain(rows, columns)


def _write_json(rows: Sequence[Row]) -> None:
    # One object per line, so that grep and people can read it as well.
    lines = ",\n ".join(json_text(row) for row in rows)
    output.write_raw(f"[{lines}]\n")


def _write_plain(rows: Sequence[Row], columns: Sequence[Column]) -> None:
    table = [[column.heading for column in columns]]
    table += [[column.cell(row) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(columns))]
    for line in table:
        cells = [
            cell.rjust(width) if column.align_right else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        ]
        output.write_line(GAP.join(cells).rstrip())
