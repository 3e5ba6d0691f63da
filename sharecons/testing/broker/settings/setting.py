"""The definition of a setting, with its valid values.

The messages are Kafka's own, word for word, since tools and tests check them.
"""

import enum
import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Kind", "Setting", "elements"]


class Kind(enum.IntEnum):
    """Types of settings, numbered as in DescribeConfigs; 0 is unknown."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


BITS: Final = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}
WHOLE: Final = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    name: str
    kind: Kind
    default: str | None
    lowest: float | None = None
    highest: float | None = None
    choices: tuple[str, ...] = ()
    form: str = ""
    """A regular expression for valid values, where choices are not enough."""
    refusal: str = ""
    """The message for a value that does not match `form`."""
    parents: tuple[str, ...] = ()
    """The broker settings that it falls back to, the nearest first."""
    floor: str = ""
    ceiling: str = ""
    """The broker settings that bound it."""
    dynamic: bool = True
    """Whether it can be changed while the broker runs."""
    later: bool = False
    """Whether it is of a later Kafka; then it is shown only where it is set."""
    doc: str = ""

    def problem(self, value: str) -> str | None:
        """Return why a value is invalid, or None if it is valid."""
        value = value.strip()
        shown, reason = value, None
        if self.kind in BITS:
            reason = self._whole_problem(value)
        elif self.kind is Kind.DOUBLE:
            shown, reason = self._fraction_problem(value)
        elif self.kind is Kind.BOOLEAN and value.lower() not in ("true", "false"):
            reason = "Expected value to be either true or false"
        elif self.kind is Kind.LIST:
            shown, reason = self._list_problem(value)
        elif self.kind is Kind.STRING:
            reason = self._text_problem(value)
        if reason is None:
            return None
        return f"Invalid value {shown} for configuration {self.name}: {reason}"

    def _whole_problem(self, value: str) -> str | None:
        half = 1 << (BITS[self.kind] - 1)
        if not WHOLE.fullmatch(value) or not -half <= int(value) < half:
            return f"Not a number of type {self.kind.name}"
        return self._range_problem(int(value)) or self._text_problem(value)

    def _fraction_problem(self, value: str) -> tuple[str, str | None]:
        try:
            number = float(value)
        except ValueError:
            return value, f"Not a number of type {self.kind.name}"
        return str(number), self._range_problem(number)

    def _range_problem(self, number: float) -> str | None:
        if self.lowest is not None and number < self.lowest:
            return f"Value must be at least {self.lowest}"
        if self.highest is not None and number > self.highest:
            return f"Value must be no more than {self.highest}"
        return None

    def _list_problem(self, value: str) -> tuple[str, str | None]:
        for element in elements(value):
            if reason := self._text_problem(element):
                # With choices Kafka names the invalid element, else the whole list.
                shown = element if self.choices else f"[{', '.join(elements(value))}]"
                return shown, reason
        return value, None

    def _text_problem(self, value: str) -> str | None:
        if self.choices and value not in self.choices:
            return f"String must be one of: {', '.join(self.choices)}"
        if self.form and not re.fullmatch(self.form, value):
            return self.refusal.format(value=value)
        return None


def elements(value: str) -> list[str]:
    """Split a list value."""
    return [element.strip() for element in value.split(",") if element.strip()]
