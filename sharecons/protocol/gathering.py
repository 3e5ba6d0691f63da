"""When acknowledgements leave: soon, but together, and not with every fetch.

A broker writes acknowledgements down before it answers the fetch that carries them;
what is produced meanwhile waits for that (0.3 ms on 4.3.0, half of what a record
takes that comes alone). So where records come one by one, acknowledgements gather
for moments and ride with one fetch out of a few. The fetches between wait at the
broker no longer than those may gather: nothing can be sent past a waiting fetch.

What lets a record go does not gather: another consumer may be waiting for it.
"""

from typing import Final

__all__ = ["ACK_DELAY", "RIDE_AFTER", "Gathering"]

NEVER: Final = float("inf")

ACK_DELAY: Final = 0.004
"""Seconds that an acknowledgement waits for others."""
RIDE_AFTER: Final = 0.002
"""Seconds after which it takes the next fetch, though it may wait longer: a fetch
that has to end at once would bring nothing."""


class Gathering:
    """Says when; one for each leader.

    Attributes:
        due: when what has gathered leaves by itself, `NEVER` if nothing has.
        urgent: somebody waits for it.
    """

    def __init__(self) -> None:
        self.due = NEVER
        self.urgent = False

    def begin(self, now: float) -> None:
        """Something is to be sent, perhaps since earlier."""
        if self.due == NEVER:
            self.due = now + ACK_DELAY

    def end(self) -> None:
        """Nothing is left to send, or it is on its way."""
        self.due = NEVER
        self.urgent = False

    def leaves(self, now: float) -> bool:
        """True if it leaves by itself, where no fetch is due."""
        return self.urgent or now >= self.due

    def rides(self, now: float) -> bool:
        """True if it takes the fetch that is due."""
        return self.urgent or now >= self.due - ACK_DELAY + RIDE_AFTER
