"""When acknowledgements leave: soon, but together, and not with every fetch.

A broker writes acknowledgements down before it answers the fetch that carries them;
what is produced meanwhile waits for that (0.3 ms on 4.3.0, half of what a record
takes that comes alone). So where records come one by one, acknowledgements gather
for moments, and ride with the last fetch that is likely to go out by then: where
records are further apart than that, with the first. The fetches between wait at the
broker no longer than those may gather: nothing can be sent past a waiting fetch.

What lets a record go does not gather: another consumer may be waiting for it.
"""

import math
from typing import Final

__all__ = ["ACK_DELAY", "AckLinger"]

ACK_DELAY: Final = 0.0045
"""Seconds that an acknowledgement waits for others; a broker, which is told of whole
milliseconds, may hold it up for half of one more. Where a record comes each millisecond
one fetch of five has some then. With one of three p50 was 1.16 of that on a broker half
as fast (its JVM without C2), on a fast one the same; with one of seven 0.78 and 0.93,
and 0.96 (a process that changed over every quarter of a second)."""


class AckLinger:
    """Says when; one for each leader.

    Attributes:
        due: when what has gathered leaves by itself, `math.inf` if nothing has.
        urgent: somebody waits for it.
    """

    def __init__(self) -> None:
        self.due = math.inf
        self.urgent = False

    def begin(self, now: float) -> None:
        """Something is to be sent, perhaps since earlier."""
        if self.due == math.inf:
            self.due = now + ACK_DELAY

    def end(self) -> None:
        """Nothing is left to send, or it is on its way."""
        self.due = math.inf
        self.urgent = False

    def is_due(self, now: float) -> bool:
        """True if it leaves by itself, where no fetch is due."""
        return self.urgent or now >= self.due

    def can_piggyback(self, now: float, following: float) -> bool:
        """True if it takes the fetch that is due; the next is so many seconds later."""
        return self.urgent or now + following >= self.due
