"""The scope of acquisition locks: the share session in which they were acquired."""

from typing import final

__all__ = ["LockScope"]


@final
class LockScope:
    """How long locks hold: until the share session they were acquired in ends.

    Attributes:
        ended: the session has ended, and its locks with it.
        reason: why, for messages.
    """

    __slots__ = ("ended", "reason")

    def __init__(self) -> None:
        self.ended = False
        self.reason = ""
