"""The one exception in here; whoever knows where a property came from adds that."""

from collections.abc import Callable

from sharecons.errors import ConfigurationError

__all__ = ["BrokenError", "check"]


class BrokenError(Exception):
    """A property that makes no sense.

    Attributes:
        property: its name.
        reason: what is wrong with it; never its value where that is a secret.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.property = name
        self.reason = reason


def check(name: str, how: Callable[[str, str], object], value: str) -> None:
    """Check a property with a function of `options`.

    Raises:
        BrokenError: with the reason that the function gave, less the name in front.
    """
    try:
        how(name, value)
    except ConfigurationError as error:
        raise BrokenError(name, str(error).removeprefix(f"{name} ")) from error
