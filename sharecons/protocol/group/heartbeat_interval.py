"""The seconds between two heartbeats of a member."""

from typing import Final

__all__ = ["HeartbeatInterval"]

EARLY_INTERVAL: Final = 0.1
EARLY_PERIOD: Final = 3.0
"""Three times share.assignment.interval.ms (1 s); then the usual interval applies."""

DEFAULT_INTERVAL: Final = (
    5.0  # group.share.heartbeat.interval.ms, until a response has it
)
MIN_INTERVAL: Final = 0.1  # even if a broker returns a shorter one


class HeartbeatInterval:
    """The interval of one member: the coordinator's, or a shorter one for a while.

    The coordinator returns an assignment only in the response to a heartbeat. So while
    one is expected, heartbeats are sent early.

    Attributes:
        usual: the coordinator's interval.
    """

    def __init__(self) -> None:
        self.usual = DEFAULT_INTERVAL
        self._early_until = 0.0

    def begin_early(self, now: float) -> None:
        """Send early heartbeats for EARLY_PERIOD, unless an assignment ends it."""
        self._early_until = now + EARLY_PERIOD

    def end_early(self, now: float) -> None:
        """Return to the usual interval: the assignment has arrived."""
        self._early_until = now

    def is_early(self, now: float) -> bool:
        return now < self._early_until

    def on_response(self, interval: float) -> None:
        """Set the usual interval from a response; 0.0 or less if it has none."""
        self.usual = max(interval if interval > 0.0 else DEFAULT_INTERVAL, MIN_INTERVAL)

    def next(self, now: float) -> float:
        """Return the seconds until the next heartbeat."""
        return min(EARLY_INTERVAL, self.usual) if self.is_early(now) else self.usual
