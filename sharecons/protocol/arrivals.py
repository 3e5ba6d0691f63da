"""How far apart the records of one leader come, and what becomes of its next fetch.

Where they come in crowds each fetch finds some, whenever it comes, and more of them
bring less each. They are work for the broker all the same, and on a machine that has
no more to give, what is produced then waits for it. So the next fetch rests first.
"""

from typing import Final

__all__ = ["CROWD", "LONGEST_REST", "SPARED", "Arrivals"]

NEVER: Final = float("inf")

SEEMING: Final = 0.006
WEIGHT: Final = 0.2
"""How many seconds one may seem at most to have been in coming, and how much that
counts. More than acknowledgements gather for: see `gathering`."""

CROWD: Final = 0.0001
"""Seconds from record to record below which a fetch rests. Measured at 20,000/s: where
the machine is full, p99 is half of 39 ms, and p50 3.5 ms instead of 2.2; where it falls
behind, p50 is a tenth of 0.2 s; where it has time, 0.97 ms instead of 0.93. At 5,000/s
p50 would be half as much again."""
SPARED: Final = 0.0006
LONGEST_REST: Final = 0.001
"""It rests as long as the last one took, less what is spared, which a broker with time
to spare needs no more than. But not longer than this: what came in one go, after a wait
at the broker, took long too."""


class Arrivals:
    """Says what they make of the next fetch; one for each leader.

    Attributes:
        rests_until: none is due before, unless more lies ready.
        between: seconds from one that brought records to the next, on average, as far
            as `SEEMING`.
    """

    def __init__(self) -> None:
        self.rests_until = 0.0
        self.between = SEEMING
        self._came_at = -NEVER
        self._apart = SEEMING

    def came(self, records: int, asked: float, now: float, *, keeps_up: bool) -> None:
        """A fetch, asked then, brought records.

        `keeps_up` says that the application works them in moments.
        """
        between = now - self._came_at
        self.between += (min(between, SEEMING) - self.between) * WEIGHT
        self._apart += (min(between / records, SEEMING) - self._apart) * WEIGHT
        self._came_at = now
        if keeps_up and self._apart < CROWD:
            self.rests_until = now + min(now - asked - SPARED, LONGEST_REST)
