"""The one exception in here; whoever knows where a property came from adds that."""

__all__ = ["BrokenError"]


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
