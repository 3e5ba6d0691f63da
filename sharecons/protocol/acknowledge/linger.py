"""How long acknowledgements linger before they are sent.

A broker persists the acknowledgements in a fetch before it returns records; new records
wait meanwhile (0.3 ms on 4.3.0, half the latency of a single record). So where records
arrive one by one, acknowledgements linger for up to ACK_DELAY, and are sent with the
last fetch expected in that time; if records are further apart, with the first. Fetches
in between wait at the broker no longer than that, as no request can overtake them.

Releases do not linger: another consumer may be waiting for the record.
"""

import math
from typing import Final

__all__ = ["ACK_DELAY", "AckLinger"]

ACK_DELAY: Final = 0.0045
"""Seconds that an acknowledgement waits for others; since brokers count milliseconds,
half a millisecond may be added. With a record per millisecond, one fetch of five then
has acknowledgements. With one of three p50 was 1.16 times as high on a broker half as
fast (JVM without C2), the same on a fast one; with one of seven 0.78 and 0.93 times,
0.96 when one process alternated every quarter of a second."""


class AckLinger:
    """The linger time of one leader's acknowledgements.

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
