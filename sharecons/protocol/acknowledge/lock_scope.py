"""The scope of acquisition locks: the share session in which they were acquired."""

from typing import final

from sharecons.protocol.codes import Code

__all__ = ["LockScope"]


@final
class LockScope:
    """A share session, until whose end its acquisition locks hold.

    Attributes:
        ended: the session has ended, and its locks with it.
        reason: why it ended, for error messages.
        code: the error of acknowledgements that it ended. As in Java's client, it is
            NETWORK_EXCEPTION after a lost connection, whether a request was in flight
            or not; Java 4.4 reports UNKNOWN_SERVER_ERROR for some of these.
    """

    __slots__ = ("code", "ended", "reason")

    def __init__(self) -> None:
        self.ended = False
        self.reason = ""
        self.code: Code = Code.SHARE_SESSION_NOT_FOUND
