"""When to authenticate again on a connection, and after a failure once more.

Theory of operation
-------------------
The broker accepts requests until its session ends, so an attempt that fails before
any byte is sent costs nothing: the client repeats it until the session's end. An
attempt after the end is the last one. Late is allowed: Kafka also accepts the attempt
itself after the session's end, but no other request.
"""

from typing import Final

from sharecons.protocol.backoff import Backoff

__all__ = ["Renewal"]

FOREVER: Final = float("inf")

FIRST_DELAY: Final = 0.1
MAX_DELAY: Final = 10.0
"""Seconds between two attempts: each one can be a request to an identity provider."""


class Renewal:
    """The times of the SASL session of one connection.

    Attributes:
        due_at: when to authenticate again.
        ends_at: when the session ends; it has ended before the first success.
    """

    def __init__(self) -> None:
        self.due_at = FOREVER
        self.ends_at = -FOREVER
        self._backoff = Backoff(first=FIRST_DELAY, limit=MAX_DELAY)

    def on_success(self, due_at: float, ends_at: float) -> None:
        """Begin a session."""
        self.due_at, self.ends_at = due_at, ends_at
        self._backoff.reset()

    def on_failure(self, now: float) -> bool:
        """Plan another attempt; return False if the session has ended."""
        if now >= self.ends_at:
            return False
        self.due_at = min(now + self._backoff.next_delay(), self.ends_at)
        return True
