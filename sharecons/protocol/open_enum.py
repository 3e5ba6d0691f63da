"""Enumerations that newer brokers can extend."""

import enum
from typing import Self

__all__ = ["OpenEnum"]


class OpenEnum(enum.IntEnum):
    """An IntEnum that accepts any number.

    A number that is not listed becomes a value named UNKNOWN_<number>; its `is_known`
    is False. It is equal to the number, and is not among the members.
    """

    @property
    def is_known(self) -> bool:
        return self.name in type(self).__members__

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, int):
            return None
        unknown = int.__new__(cls, value)
        unknown._name_ = f"UNKNOWN_{value}"
        unknown._value_ = value
        return unknown
