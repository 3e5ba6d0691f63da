"""Columns of tables, and what their cells show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sharecons.cli.output import encoding
from sharecons.escaping import Json, escape

__all__ = ["GAP", "NOTHING", "Column", "Row", "text_of"]

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
        """Return what the column shows of a row, escaped for stdout."""
        value = row.get(self.name)
        text = text_of(value) if self.text is None else self.text(value)
        return escape(text, encoding())


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
