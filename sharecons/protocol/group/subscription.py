"""The topics of a member, and the topics left out of its heartbeats.

A group coordinator rejects a whole heartbeat if the member is not allowed to describe
one of its topics. The response does not name the topic; metadata does.
"""

from typing import Final, final

from sharecons.protocol.codes import Code

__all__ = ["Subscription"]

NONE: Final = int(Code.NONE)


@final
class Subscription:
    """The topics that the application has subscribed to.

    Attributes:
        topics: all subscribed topics.
        unauthorized: topics without permission to describe; set by `Membership`.
    """

    def __init__(self) -> None:
        self.topics: tuple[str, ...] = ()
        self.unauthorized: frozenset[str] = frozenset()
        self._is_rejected = False
        self._code = NONE

    def change(self, topics: tuple[str, ...]) -> None:
        """Replace the subscription; all topics are sent first."""
        self.topics = topics
        self._is_rejected = False
        self._code = NONE

    @property
    def allowed_topics(self) -> tuple[str, ...]:
        """The topics to send; after a rejection, without the unauthorized ones."""
        if not self._is_rejected:
            return self.topics
        return (
            tuple(t for t in self.topics if t not in self.unauthorized) or self.topics
        )

    def changed_topics(
        self, confirmed: tuple[str, ...] | None
    ) -> tuple[str, ...] | None:
        """Return the topics to send, or None if the coordinator has confirmed them."""
        topics = self.allowed_topics
        return topics if topics != confirmed else None

    def on_rejected(self, code: int) -> bool:
        """Record a rejected heartbeat; return whether the error is a new one."""
        is_new = code != self._code
        self._is_rejected = True
        self._code = code
        return is_new

    def on_accepted(self) -> None:
        """Forget the last error after an accepted heartbeat."""
        self._code = NONE
