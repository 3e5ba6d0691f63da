"""The default of arguments for which None has another meaning."""

import enum
from typing import Final

__all__ = ["NOT_GIVEN", "NotGiven"]


class NotGiven(enum.Enum):
    """The type of `NOT_GIVEN`."""

    NOT_GIVEN = enum.auto()

    def __repr__(self) -> str:
        return "NOT_GIVEN"


NOT_GIVEN: Final = NotGiven.NOT_GIVEN
"""An argument that the application did not pass."""
