"""Tables that fit the width of the terminal.

In a table that is too wide, section columns (group, topic) move to a line above their
rows. If the rest is still too wide, each row becomes a block with one line per column.
Lists are broken after their commas.
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

MIN_LIST_WIDTH: Final = 24
"""Characters that a list column needs at least to be readable."""

_LIST_ITEMS: Final = re.compile(r"[^,;]*[,;]?")


def write(rows: Sequence[Row], columns: Sequence[Column]) -> None:
    """Write rows to stdout, which is a terminal."""
    console = Console(
        file=output.rich_stdout(), highlight=False, markup=False, emoji=False
    )
    without_sections = [column for column in columns if not column.is_section]
    if _fits(console, rows, columns):
        console.print(_new_table(console, rows, columns))
    elif len(without_sections) < len(columns) and _fits(
        console, rows, without_sections
    ):
        sections = [column for column in columns if column.is_section]
        _write_sections(console, rows, sections, without_sections)
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
    return (
        sum(_fixed_widths(rows, columns)) + _min_folded_width(rows, columns)
        <= console.width
    )


def _fixed_widths(rows: Sequence[Row], columns: Sequence[Column]) -> list[int]:
    """Return the widths of the gaps and of the columns that cannot fold."""
    widths = _widths(rows, columns)
    gaps = len(GAP) * (len(columns) - 1)
    return [gaps, *(widths[column.name] for column in columns if not column.can_fold)]


def _min_folded_width(rows: Sequence[Row], columns: Sequence[Column]) -> int:
    widths = _widths(rows, columns)
    return sum(
        min(widths[each.name], MIN_LIST_WIDTH) for each in columns if each.can_fold
    )


def _folded_widths(
    console: Console, rows: Sequence[Row], columns: Sequence[Column]
) -> Mapping[str, int]:
    """Divide the remaining width among the folding columns, the narrowest first."""
    widths = _widths(rows, columns)
    left = console.width - sum(_fixed_widths(rows, columns))
    folding = sorted(
        (widths[each.name], each.name) for each in columns if each.can_fold
    )
    folded: dict[str, int] = {}
    for number, (width, name) in enumerate(folding):
        folded[name] = min(width, left // (len(folding) - number))
        left -= folded[name]
    return folded


def _new_table(
    console: Console, rows: Sequence[Row], columns: Sequence[Column]
) -> Table:
    folded = _folded_widths(console, rows, columns)
    table = Table(box=None, pad_edge=False, padding=(0, len(GAP), 0, 0))
    for column in columns:
        justify: JustifyMethod = "right" if column.align_right else "left"
        table.add_column(
            Text(column.heading, "bold", justify=justify), justify=justify, no_wrap=True
        )
    for row in rows:
        cells = [
            "\n".join(_break_list(column.cell(row), folded.get(column.name)))
            for column in columns
        ]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _write_sections(
    console: Console,
    rows: Sequence[Row],
    sections: Sequence[Column],
    columns: Sequence[Column],
) -> None:
    def section_of(row: Row) -> list[str]:
        return [f"{column.heading} {column.cell(row)}" for column in sections]

    for number, (heading, section_rows) in enumerate(groupby(rows, section_of)):
        if number:
            console.print()
        for line in heading:
            console.print(Text(line, "bold"), soft_wrap=True)
        console.print(_new_table(console, list(section_rows), columns))


def _write_blocks(
    console: Console, rows: Sequence[Row], columns: Sequence[Column]
) -> None:
    width = max(len(column.heading) for column in columns)
    for number, row in enumerate(rows):
        if number:
            console.print()
        for column in columns:
            line_width = console.width - width - len(GAP) if column.can_fold else None
            first, *more = _break_list(column.cell(row), line_width)
            line = Text.assemble((f"{column.heading:<{width}}", "bold"), GAP, first)
            console.print(line, soft_wrap=True)
            for rest in more:
                console.print(Text(" " * (width + len(GAP)) + rest), soft_wrap=True)


def _break_list(text: str, width: int | None) -> list[str]:
    """Break a list into lines after its commas."""
    if width is None or cell_len(text) <= width:
        return [text]
    lines = [""]
    for item in _LIST_ITEMS.findall(text):
        if lines[-1] and cell_len(lines[-1] + item) > width:
            lines.append("")
        lines[-1] += item
    return lines
