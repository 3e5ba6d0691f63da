"""The definition of a setting, with its valid values.

The messages are Kafka's own, word for word, since tools and tests check them.
"""

import enum
import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Kind", "Setting", "split_list"]


class Kind(enum.IntEnum):
    """Types of settings, numbered as in DescribeConfigs; 0 is unknown."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


INTEGER_BITS: Final = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}
INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    name: str
    kind: Kind
    default: str | None
    min_value: float | None = None
    max_value: float | None = None
    choices: tuple[str, ...] = ()
    pattern: str = ""
    """A regular expression for valid values, where choices are not enough."""
    pattern_error: str = ""
    """The message for a value that does not match `pattern`."""
    parents: tuple[str, ...] = ()
    """The broker settings that it falls back to, the nearest first."""
    min_setting: str = ""
    max_setting: str = ""
    """The broker settings that bound it."""
    dynamic: bool = True
    """Whether it can be changed while the broker runs."""
    is_later: bool = False
    """Whether it is of a later Kafka. Then it is shown only where it is set, unless the
    brokers start with one that is."""
    doc: str = ""

    def error(self, value: str) -> str | None:
        """Return why a value is invalid, or None if it is valid."""
        value = value.strip()
        shown, reason = value, None
        if self.kind in INTEGER_BITS:
            reason = self._integer_error(value)
        elif self.kind is Kind.DOUBLE:
            shown, reason = self._double_error(value)
        elif self.kind is Kind.BOOLEAN and value.lower() not in ("true", "false"):
            reason = "Expected value to be either true or false"
        elif self.kind is Kind.LIST:
            shown, reason = self._list_error(value)
        elif self.kind is Kind.STRING:
            reason = self._text_error(value)
        if reason is None:
            return None
        return f"Invalid value {shown} for configuration {self.name}: {reason}"

    def _integer_error(self, value: str) -> str | None:
        half = 1 << (INTEGER_BITS[self.kind] - 1)
        if not INTEGER.fullmatch(value) or not -half <= int(value) < half:
            return f"Not a number of type {self.kind.name}"
        return self._range_error(int(value)) or self._text_error(value)

    def _double_error(self, value: str) -> tuple[str, str | None]:
        try:
            number = float(value)
        except ValueError:
            return value, f"Not a number of type {self.kind.name}"
        return str(number), self._range_error(number)

    def _range_error(self, number: float) -> str | None:
        if self.min_value is not None and number < self.min_value:
            return f"Value must be at least {self.min_value}"
        if self.max_value is not None and number > self.max_value:
            return f"Value must be no more than {self.max_value}"
        return None

    def _list_error(self, value: str) -> tuple[str, str | None]:
        for element in split_list(value):
            if reason := self._text_error(element):
                # With choices Kafka names the invalid element, else the whole list.
                shown = element if self.choices else f"[{', '.join(split_list(value))}]"
                return shown, reason
        return value, None

    def _text_error(self, value: str) -> str | None:
        if self.choices and value not in self.choices:
            return f"String must be one of: {', '.join(self.choices)}"
        if self.pattern and not re.fullmatch(self.pattern, value):
            return self.pattern_error.format(value=value)
        return None


def split_list(value: str) -> list[str]:
    """Split a list value."""
    return [element.strip() for element in value.split(",") if element.strip()]
