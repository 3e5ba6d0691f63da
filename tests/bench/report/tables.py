"""Figures as people read them, and tables that are tidy as plain text too."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from tests.bench.report.summary import Spread
from tests.bench.roster import CLIENTS

__all__ = [
    "MIB",
    "WIDTH",
    "aligned",
    "codec_of",
    "column",
    "hundredths",
    "is_compressed",
    "mib",
    "milliseconds",
    "size_of",
    "table",
    "thousands",
    "title",
    "told",
]

MIB: Final = 1 << 20
KIB: Final = 1 << 10
NOTHING: Final = "-"
WIDTH: Final = 88  # of running text

Format = Callable[[float], str]
Column = Mapping[str, str]


def column(spreads: Mapping[str, Spread], spell: Format) -> Column:
    """Give what a column says of each client."""
    return {name: told(spread, spell) for name, spread in spreads.items()}


def told(spread: Spread | None, spell: Format) -> str:
    """Spell a median, and between what it lies if there was more than one round."""
    if spread is None:
        return NOTHING
    middle, low, high = (spell(x) for x in (spread.median, spread.low, spread.high))
    return middle if low == high else f"{middle} ({low} to {high})"


def table(columns: Mapping[str, Column]) -> Iterator[str]:
    """Give a table with a line for each client that any column knows."""
    known = [name for name in CLIENTS if any(name in each for each in columns.values())]
    rows = [
        [title(name), *(each.get(name, NOTHING) for each in columns.values())]
        for name in known
    ]
    yield from aligned(["client", *columns], rows)


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Give a table's lines, and an empty one; what is a figure stands to the right."""
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
    return f"{size // KIB} KiB" if size >= KIB and size % KIB == 0 else f"{size} bytes"


def codec_of(codec: str) -> str:
    return codec if is_compressed(codec) else "uncompressed"


def is_compressed(codec: str) -> bool:
    return codec != "none"


def thousands(figure: float) -> str:
    return f"{figure:,.0f}"


def hundredths(figure: float) -> str:
    return f"{figure:.2f}"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f}"


def mib(size: float) -> str:
    return f"{size / MIB:.1f}"
