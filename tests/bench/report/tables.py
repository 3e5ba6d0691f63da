"""Formatting of figures, and Markdown tables aligned for plain text."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Final, NamedTuple

from tests.bench.report.summary import (
    Measurement,
    Spread,
    Value,
    by_client,
    bytes_above_base,
    cpu_per_million,
    field,
    ratios,
    records_per_second,
)
from tests.bench.roster import CLIENTS

__all__ = [
    "ABOVE_BASE",
    "CPU",
    "MIB",
    "PEAK",
    "SPEED",
    "Column",
    "client_rows",
    "client_table",
    "codec_of",
    "format_spread",
    "head",
    "is_compressed",
    "markdown_table",
    "mebibytes",
    "milliseconds",
    "paragraph",
    "size_of",
    "title",
    "two_decimals",
    "whole_number",
]

MIB: Final = 1 << 20
KIB: Final = 1 << 10
NOTHING: Final = "-"
WIDTH: Final = 88  # characters of running text

Format = Callable[[float], str]
Lines = Iterator[str]


def whole_number(figure: float) -> str:
    return f"{figure:,.0f}"


def two_decimals(figure: float) -> str:
    return f"{figure:.2f}"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f}"


def mebibytes(size: float) -> str:
    return f"{size / MIB:.1f}"


class Column(NamedTuple):
    """A column of figures of the clients.

    Attributes:
        name: its heading.
        value: the figure of a measurement.
        show: formats the figure.
        beside: the client whose figures of the same round divide the others.
    """

    name: str
    value: Value
    show: Format = two_decimals
    beside: str | None = None

    def cells(self, found: Sequence[Measurement]) -> dict[str, str]:
        """Return the text for each client that has the figure."""
        if self.beside is None:
            spreads = by_client(found, self.value)
        else:
            spreads = ratios(found, self.value, self.beside)
        return {name: format_spread(each, self.show) for name, each in spreads.items()}


SPEED: Final = Column("records/s", records_per_second, whole_number)
CPU: Final = Column("CPU s per million", cpu_per_million)
PEAK: Final = Column("peak memory, MiB", field("peak"), mebibytes)
ABOVE_BASE: Final = Column("memory, MiB", bytes_above_base, mebibytes)


def format_spread(spread: Spread | None, show: Format) -> str:
    """Return the median, and minimum and maximum in brackets if they differ."""
    if spread is None:
        return NOTHING
    middle, low, high = map(show, (spread.median, spread.low, spread.high))
    return middle if low == high else f"{middle} ({low} to {high})"


def client_rows(columns: Sequence[Mapping[str, str]]) -> list[list[str]]:
    """Return a row for each client that any column contains, in the roster's order."""
    return [
        [title(name), *(each.get(name, NOTHING) for each in columns)]
        for name in CLIENTS
        if any(name in each for each in columns)
    ]


def client_table(found: Sequence[Measurement], *columns: Column) -> Lines:
    """Yield a table of the clients, without columns that are empty."""
    cells = {each.name: each.cells(found) for each in columns}
    cells = {name: each for name, each in cells.items() if each}
    yield from markdown_table(["client", *cells], client_rows([*cells.values()]))


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Lines:
    """Yield a table's lines and an empty line; numeric columns are right-aligned."""
    columns = [*zip(head, *rows, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    figures = [
        all(cell[:1] in "-0123456789" for cell in column[1:]) for column in columns
    ]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if figure else cell.ljust(width)
            for cell, width, figure in zip(cells, widths, figures, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    yield line(head)
    rules = (
        "-" * (width - 1) + (":" if figure else "-")
        for width, figure in zip(widths, figures, strict=True)
    )
    yield f"| {' | '.join(rules)} |"
    yield from map(line, rows)
    yield ""


def head(text: str, level: int = 2) -> Lines:
    yield f"{'#' * level} {text}"
    yield ""


def paragraph(text: str) -> Lines:
    yield from wrap(text, WIDTH, break_on_hyphens=False)
    yield ""


def title(name: str | None) -> str:
    return CLIENTS[name].title if name and name in CLIENTS else str(name)


def size_of(size: int) -> str:
    if size >= MIB and size % MIB == 0:
        return f"{size // MIB} MiB"
    return f"{size // KIB} KiB" if size >= KIB and size % KIB == 0 else f"{size} bytes"


def codec_of(codec: str) -> str:
    return codec if is_compressed(codec) else "uncompressed"


def is_compressed(codec: str) -> bool:
    return codec != "none"
