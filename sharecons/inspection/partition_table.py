"""The partitions of a group as a table with bars, fitted to a width.

The widest of three layouts that fits is used: all in one line per partition; the topic
in a line above its partitions; the bar in a line below the numbers.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, starmap
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.columns import Columns
from rich.console import RenderResult
from rich.table import Table
from rich.text import Text

from sharecons.group_state.offset_states import OffsetRange, OffsetStatus
from sharecons.inspection.inspect import GroupInspection
from sharecons.inspection.offset_bars import (
    WINDOW_END,
    OffsetBar,
    cells_of,
    offset_bars_of,
    sign_of,
    style_of,
)
from sharecons.inspection.partition_rows import (
    RANGE_HEADINGS,
    TEXTS,
    Column,
    columns_of,
    ranges_of,
    texts_of,
)

__all__ = ["draw_partitions", "draw_ranges"]

MIN_BAR_WIDTH: Final = 12
USUAL_BAR_WIDTH: Final = 40
"""Characters of a bar: at least beside numbers, and at least beside a topic."""

GAP: Final = 2

Escape = Callable[[str], str]
DrawBar = Callable[[OffsetBar, int], Text]


class _Row(NamedTuple):
    """A partition: the texts of its cells, by heading, and its bar."""

    topic: str
    cells: Mapping[str, str]
    bar: OffsetBar


def draw_partitions(
    group: GroupInspection,
    width: int,
    *,
    escaped: Escape,
    unicode: bool,
    max_bar_width: int,
    max_rows: int | None,
) -> RenderResult:
    """Yield up to `max_rows` partitions, and a line with the number of the others.

    The bars are beside the topic if there is space for them, else beside the other
    columns under a heading for each topic, else on lines of their own.
    """
    bars = offset_bars_of(group)
    numbers = columns_of(group)
    rows = [_row(bar, numbers, group.at, escaped) for bar in bars[:max_rows]]

    def draw_bar(bar: OffsetBar, width: int) -> Text:
        return _bar_text(bar, width, group.facts.delivery_limit, unicode)

    columns = list(rows[0].cells)
    width_with_topic = width - _total_width(rows, columns)
    width_under_topic = width - _total_width(rows, columns[1:])
    if width_with_topic >= min(USUAL_BAR_WIDTH, max_bar_width):
        yield _table(rows, columns, draw_bar, min(width_with_topic, max_bar_width))
    elif width_under_topic >= MIN_BAR_WIDTH:
        bar_width = min(width_under_topic, max_bar_width)
        for topic, of_topic in groupby(rows, lambda row: row.topic):
            yield Text(f"topic {topic}", "bold")
            yield _table(list(of_topic), columns[1:], draw_bar, bar_width)
    else:
        for row in rows:
            yield from _paragraph(row, draw_bar, min(width, max_bar_width))
    if more := len(bars) - len(rows):
        noun = "partition" if more == 1 else "partitions"
        yield Text(f"and {more} more {noun}")


def draw_ranges(group: GroupInspection, escaped: Escape) -> RenderResult:
    """Yield a table of the ranges of offsets with the same status."""
    table = _empty_table()
    for heading in RANGE_HEADINGS:
        _add_column(table, heading)
    for each, texts in ranges_of(group, escaped):
        cells = [Text(text) for text in texts]
        style = style_of(each, group.facts.delivery_limit)
        cells[RANGE_HEADINGS.index("STATUS")].stylize(style)
        table.add_row(*cells)
    yield table


def _row(bar: OffsetBar, columns: Sequence[Column], at: float, escaped: Escape) -> _Row:
    cells = texts_of(bar.key, bar.partition, columns, at, escaped)
    return _Row(cells["TOPIC"], cells, bar)


def _total_width(rows: Sequence[_Row], headings: Sequence[str]) -> int:
    """Return the width of these columns, with the gap after each."""
    return sum(
        GAP + max(cell_len(heading), *(cell_len(row.cells[heading]) for row in rows))
        for heading in headings
    )


def _table(
    rows: Sequence[_Row], headings: Sequence[str], draw_bar: DrawBar, bar_width: int
) -> Table:
    table = _empty_table()
    for heading in headings:
        _add_column(table, heading)
    _add_column(table, "OFFSETS", is_text=True)
    for row in rows:
        cells = (Text(row.cells[heading]) for heading in headings)
        table.add_row(*cells, draw_bar(row.bar, bar_width))
    return table


def _paragraph(row: _Row, draw_bar: DrawBar, bar_width: int) -> RenderResult:
    """Yield the numbers in as many lines as they need, and the bar below them."""
    number = row.cells["PART"]
    yield Text(f"{row.topic}-{number}", "bold")
    numbers = (
        Text.assemble((f"{heading} ", "dim"), cell)
        for heading, cell in row.cells.items()
        if heading not in ("TOPIC", "PART")
    )
    yield Columns(numbers, padding=(0, 3))
    yield draw_bar(row.bar, bar_width)


def _empty_table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))


def _add_column(table: Table, heading: str, *, is_text: bool = False) -> None:
    table.add_column(
        heading,
        justify="left" if is_text or heading in TEXTS else "right",
        no_wrap=True,
        header_style="bold",
    )


def _bar_text(
    bar: OffsetBar, width: int, delivery_limit: int | None, unicode: bool
) -> Text:
    """Return a bar as coloured characters."""
    end = None if bar.limit is None else math.ceil(bar.limit * width)

    def sign_and_style(index: int, cell: OffsetRange) -> tuple[str, str]:
        if index == end and cell.status is OffsetStatus.ABOVE:
            sign = WINDOW_END.sign if unicode else WINDOW_END.plain
            return sign, WINDOW_END.colour
        return sign_of(cell, unicode), style_of(cell, delivery_limit)

    cells = [cell for cell in cells_of(bar, width) if cell is not None]
    signs = starmap(sign_and_style, enumerate(cells))
    text = Text(no_wrap=True)
    for style, run in groupby(signs, lambda each: each[1]):
        text.append("".join(sign for sign, _ in run), style)
    return text
