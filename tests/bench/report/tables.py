"""Formatting of figures, and Markdown tables aligned for plain text."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from tests.bench.report.summary import Spread
from tests.bench.roster import CLIENTS

__all__ = [
    "MIB",
    "WIDTH",
    "client_table",
    "codec_of",
    "format_column",
    "format_spread",
    "is_compressed",
    "markdown_table",
    "mebibytes",
    "milliseconds",
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
Column = Mapping[str, str]


def format_column(spreads: Mapping[str, Spread], format_figure: Format) -> Column:
    """Return the text of a column for each client."""
    return {
        name: format_spread(spread, format_figure) for name, spread in spreads.items()
    }


def format_spread(spread: Spread | None, format_figure: Format) -> str:
    """Return the median, and minimum and maximum in brackets if they differ."""
    if spread is None:
        return NOTHING
    middle, low, high = (
        format_figure(x) for x in (spread.median, spread.low, spread.high)
    )
    return middle if low == high else f"{middle} ({low} to {high})"


def client_table(columns: Mapping[str, Column]) -> Iterator[str]:
    """Yield a table with a row for each client that any column contains."""
    known = [name for name in CLIENTS if any(name in each for each in columns.values())]
    rows = [
        [title(name), *(each.get(name, NOTHING) for each in columns.values())]
        for name in known
    ]
    yield from markdown_table(["client", *columns], rows)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table's lines and an empty line; numeric columns are right-aligned."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    figures = [
        all(row[i][:1] in "-0123456789" for row in rows) for i in range(len(head))
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


def whole_number(figure: float) -> str:
    return f"{figure:,.0f}"


def two_decimals(figure: float) -> str:
    return f"{figure:.2f}"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f}"


def mebibytes(size: float) -> str:
    return f"{size / MIB:.1f}"
