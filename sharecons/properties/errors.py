"""The exception of this package; the caller adds where the property comes from."""

from collections.abc import Callable

from sharecons.errors import ConfigurationError

__all__ = ["PropertyError", "check_property"]


class PropertyError(Exception):
    """A property is invalid or missing.

    Attributes:
        property: the name of the property.
        reason: the fault of its value; without the value if that is a secret.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.property = name
        self.reason = reason


def check_property(name: str, check: Callable[[str, str], object], value: str) -> None:
    """Check a property with a function of `validation`.

    Raises:
        PropertyError: the function raised; the reason is its message without the name.
    """
    try:
        check(name, value)
    except ConfigurationError as error:
        # The message begins with the property's name or its argument's.
        reason = str(error).removeprefix(name).removeprefix(name.replace(".", "_"))
        raise PropertyError(name, reason.lstrip(": ")) from error
