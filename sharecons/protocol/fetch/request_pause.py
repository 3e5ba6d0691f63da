"""When the next request to a leader can be sent: after throttle times and backoffs."""

from typing import final

from sharecons.protocol.backoff import Backoff

__all__ = ["RequestPause"]


@final
class RequestPause:
    """The pause before the next request to one leader.

    Attributes:
        until: no request is sent before this time.
    """

    def __init__(self, spread: float) -> None:
        self.until = 0.0
        self._spread = spread
        self._backoff: Backoff | None = None  # None after a success

    def throttle(self, now: float, seconds: float) -> None:
        """Wait for as long as the broker throttles this client."""
        self.until = now + seconds

    def back_off(self, now: float, throttle: float) -> None:
        """Wait after an error, each time for longer, and at least the throttle time."""
        if self._backoff is None:
            self._backoff = Backoff(self._spread)
        self.until = now + max(self._backoff.next_delay(), throttle)

    def on_success(self) -> None:
        """The next backoff is short again."""
        self._backoff = None
