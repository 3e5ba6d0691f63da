"""A measured figure of one scene."""

from typing import NamedTuple

__all__ = ["Figure"]


class Figure(NamedTuple):
    """A value with its unit, which is a key of `growth.NOISE`.

    Attributes:
        name: of the operation, such as "idle" or a command.
        is_broker: the broker alone decides it.
        detail: of the figure, such as an API or a part of the operation.
    """

    name: str
    unit: str
    value: float
    is_broker: bool = False
    detail: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.name, self.detail, self.unit
