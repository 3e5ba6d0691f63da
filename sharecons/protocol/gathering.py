"""When acknowledgements leave: soon, but together, and not with every fetch.

A broker writes acknowledgements down before it answers the fetch that carries them;
what is produced meanwhile waits for that (0.3 ms on 4.3.0, half of what a record
takes that comes alone). So where records come one by one, acknowledgements gather
for moments and ride with one fetch out of a few. The fetches between wait at the
broker no longer than those may gather: nothing can be sent past a waiting fetch.

What lets a record go does not gather: another consumer may be waiting for it.
"""

from typing import Final

__all__ = ["ACK_DELAY", "FLOOD", "RIDE_AFTER", "TRICKLE", "Gathering"]

NEVER: Final = float("inf")

ACK_DELAY: Final = 0.004
"""Seconds that an acknowledgement waits for others."""
RIDE_AFTER: Final = 0.002
"""Seconds after which it takes the next fetch, though it may wait longer: a fetch
that has to end at once would bring nothing."""
TRICKLE: Final = 0.003
FLOOD: Final = 0.0005
"""Seconds from record to record between which they trickle. Where they come faster, a
fetch finds some whenever it comes: twice as many fetches would bring half as much
each, and a busy broker falls behind (from 15 ms at 20,000/s to half a second)."""
SEEMING: Final = 2 * TRICKLE
WEIGHT: Final = 0.2
"""How long one may seem at most to have been in coming, and how much that counts."""


class Gathering:
    """Says when; one for each leader.

    Attributes:
        due: when what has gathered leaves by itself, `NEVER` if nothing has.
        urgent: somebody waits for it.
        trickles: records will soon follow those that the last fetch brought.
    """

    def __init__(self) -> None:
        self.due = NEVER
        self.urgent = False
        self.trickles = False
        self._came_at = -NEVER
        self._apart = SEEMING

    def came(self, records: int, now: float, *, keeps_up: bool) -> None:
        """A fetch brought records, to an application that works them in moments."""
        apart = min((now - self._came_at) / records, SEEMING)
        self._apart += (apart - self._apart) * WEIGHT
        self._came_at = now
        self.trickles = keeps_up and FLOOD <= self._apart <= TRICKLE

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
