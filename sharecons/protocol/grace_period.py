"""How long rejected tokens and certificates do not end a client.

A wrong configuration stays wrong, and brokers delay or ban clients that retry. But if
a broker has accepted a client before, one broker can have restarted with a wrong
certificate, or one token be bad. The client then retries for seconds, because ending it
costs all of its locks. Passwords have no grace period: attempts with a changed password
can lock an account.
"""

import math
from typing import Final

__all__ = ["DURATION", "GracePeriod"]

DURATION: Final = 10.0
"""Seconds from the first rejection by a broker."""

GAP: Final = 60.0
"""Seconds without an attempt after which a rejection is the first one again. Longer
than any backoff, so that a lasting problem ends the client."""


class GracePeriod:
    """The grace periods of one client, one for each broker.

    Args:
        was_accepted: a broker has accepted a client with the same configuration.
    """

    def __init__(self, *, was_accepted: bool = False) -> None:
        self._was_accepted = was_accepted
        # The end of each broker's period, and its last rejection.
        self._periods: dict[str, tuple[float, float]] = {}

    def on_accepted(self, broker: str) -> None:
        """End the broker's period; both sides have accepted each other."""
        self._was_accepted = True
        self._periods.pop(broker, None)

    def on_rejected(self, broker: str, now: float, until: float = -math.inf) -> bool:
        """Begin or continue the broker's period; return whether to try again.

        False if no broker has ever accepted the client: its configuration is wrong.

        Args:
            until: when a period that begins now ends, if that is later.
        """
        if not self._was_accepted:
            return False
        end, last = self._periods.get(broker, (0.0, -math.inf))
        if now - last > GAP:
            end = max(until, now + DURATION)
        self._periods[broker] = end, now
        return now < end
