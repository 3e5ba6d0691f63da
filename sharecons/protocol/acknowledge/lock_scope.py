"""The scope of acquisition locks: the share session in which they were acquired."""

from typing import final

__all__ = ["LockScope"]


@final
class LockScope:
    """A share session, until whose end its acquisition locks hold.

    Attributes:
        ended: the session has ended, and its locks with it.
        reason: why it ended, for error messages.
    """

    __slots__ = ("ended", "reason")

    def __init__(self) -> None:
        self.ended = False
        self.reason = ""
