"""The columns of tables and the text of their cells."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sharecons.cli.output import encoding
from sharecons.escaping import Json, escape

__all__ = ["EMPTY", "GAP", "Column", "Row", "cell_text"]

Row: TypeAlias = Mapping[str, Json]

EMPTY: Final = "-"
GAP: Final = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: the row's key.
        title: the heading; by default the name in capitals.
        align_right: align cells to the right, for numbers.
        can_fold: cells are lists that a narrow terminal can break into lines.
        is_section: rows are grouped by this column; a narrow terminal shows its value
            in a line above the group.
        format: converts a value to the text of its cell.
    """

    name: str
    title: str = ""
    align_right: bool = False
    can_fold: bool = False
    is_section: bool = False
    format: Callable[[Json], str] | None = None

    @property
    def heading(self) -> str:
        return self.title or self.name.upper().replace("_", "-")

    def cell(self, row: Row) -> str:
        """Return the text of a row's cell, escaped for stdout."""
        value = row.get(self.name)
        text = cell_text(value) if self.format is None else self.format(value)
        return escape(text, encoding())


def cell_text(value: Json) -> str:
    """Return a value as the text of a cell."""
    match value:
        case None | "" | [] | ():
            return EMPTY
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case float():
            return f"{value:.3f}".rstrip("0").rstrip(".")
        case Sequence():
            return ",".join(cell_text(each) for each in value)
        case _:
            return str(value)
