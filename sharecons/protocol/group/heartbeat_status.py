"""The result of a member's last heartbeat."""

import math

__all__ = ["HeartbeatStatus"]


class HeartbeatStatus:
    """The result of the last heartbeat.

    Attributes:
        last_accepted: when the coordinator last accepted a heartbeat, or None.
    """

    def __init__(self) -> None:
        self.last_accepted: float | None = None
        self._valid_until = -math.inf

    def on_accepted(self, now: float, valid_until: float) -> None:
        """Record an accepted heartbeat; the next is expected before `valid_until`."""
        self.last_accepted = now
        self._valid_until = valid_until

    def on_failed(self) -> None:
        """End the membership's validity: a heartbeat failed, or the member leaves."""
        self._valid_until = -math.inf

    def is_connected(self, now: float) -> bool:
        """Return whether the last one was accepted and the next one is not overdue."""
        return now < self._valid_until
