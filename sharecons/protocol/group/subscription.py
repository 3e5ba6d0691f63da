"""The topics of a member, and those that it leaves out of its heartbeats.

A group coordinator rejects a heartbeat as a whole if one of its topics may not be
described. It does not say which; metadata does.
"""

from typing import Final, final

from sharecons.protocol.codes import Code

__all__ = ["Subscription"]

NONE: Final = int(Code.NONE)


@final
class Subscription:
    """What the application has subscribed to.

    Attributes:
        topics: all of it.
        forbidden: the topics whose metadata may not be read; set by the shell.
    """

    def __init__(self) -> None:
        self.topics: tuple[str, ...] = ()
        self.unauthorized: frozenset[str] = frozenset()
        self._is_rejected = False
        self._code = NONE

    def change(self, topics: tuple[str, ...]) -> None:
        """Subscribe to these instead; all of them are tried first."""
        self.topics = topics
        self._is_rejected = False
        self._code = NONE

    @property
    def allowed_topics(self) -> tuple[str, ...]:
        """The topics to send: without the forbidden ones, if that was rejected."""
        if not self._is_rejected:
            return self.topics
        return (
            tuple(t for t in self.topics if t not in self.unauthorized) or self.topics
        )

    def changed_topics(
        self, confirmed: tuple[str, ...] | None
    ) -> tuple[str, ...] | None:
        """Return the topics to send, or None if these were announced."""
        topics = self.allowed_topics
        return topics if topics != confirmed else None

    def on_rejected(self, code: int) -> bool:
        """Note that a heartbeat was rejected; return whether the error is a new one."""
        is_new = code != self._code
        self._is_rejected = True
        self._code = code
        return is_new

    def on_accepted(self) -> None:
        """Note that a heartbeat was accepted."""
        self._code = NONE
