"""How long acknowledgements wait for others before they are sent."""

import math
from typing import Final

__all__ = ["ACK_DELAY", "AckLinger"]

ACK_DELAY: Final = 0.0045
"""Seconds that an acknowledgement waits for others; since brokers count milliseconds,
this can become half a millisecond longer."""


class AckLinger:
    """How long one leader's acknowledgements linger before they are sent.

    A broker persists the acknowledgements in a fetch before it returns records. So
    where records arrive one by one, acknowledgements linger for up to ACK_DELAY, and
    are sent with the last fetch expected in that time; if records are further apart,
    with the first. Fetches in between wait at the broker no longer than that, as no
    request can overtake them. Releases do not linger: another consumer might be
    waiting.

    Attributes:
        due: when they are sent without a fetch; infinity if there are none.
        urgent: a commit waits for them.
    """

    def __init__(self) -> None:
        self.due = math.inf
        self.urgent = False

    def begin(self, now: float) -> None:
        """Start the linger time, if it is not running."""
        if self.due == math.inf:
            self.due = now + ACK_DELAY

    def end(self) -> None:
        """Stop: nothing is left to send, or it is being sent."""
        self.due = math.inf
        self.urgent = False

    def is_due(self, now: float) -> bool:
        """Return whether to send acknowledgements without a fetch."""
        return self.urgent or now >= self.due

    def can_piggyback(self, now: float, following: float) -> bool:
        """Return whether to send acknowledgements with the fetch that is due now.

        Args:
            following: seconds until the next fetch.
        """
        return self.urgent or now + following >= self.due
