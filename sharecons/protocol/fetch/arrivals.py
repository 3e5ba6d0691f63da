"""How far apart the records of one leader come, and what its next fetch makes of that.

Where they come in crowds, a fetch that is answered with the first of them leaves the
others for the next: many fetches, which bring little each. They are work for the broker
all the same, and on a machine that has no more to give, what is produced then waits for
it. So the broker is to wait until some are together, which it knows best.
"""

from typing import Final

__all__ = ["CROWD", "GATHERED", "MOST_GATHERED", "Arrivals"]

NEVER: Final = float("inf")

SEEMING: Final = 0.006
WEIGHT: Final = 0.2
"""How many seconds one may seem at most to have been in coming, and how much that
counts. More than acknowledgements gather for: see `gathering`."""

CROWD: Final = 0.0001
"""Seconds from record to record below which they are gathered: where they come at half
the rate, a broker has time for a fetch of each."""

NEAREST: Final = 1e-9  # in virtual time they come at one instant

GATHERED: Final = 0.002
MOST_GATHERED: Final = 0.003
"""For how many seconds what comes is worth waiting for, and how long at most, should
less come. Measured at 20,000/s with all of it on two cores: of these 0.53 are idle with
one millisecond and 0.76 with two, and the client takes 0.25 or 0.16 of one. p50 is 1.4
to 1.9 ms and 2.0; how late the last hundredth is depends on what is idle."""


class Arrivals:
    """Says what is asked for; one for each leader.

    Attributes:
        least: how many bytes the next fetch waits for, at most for `MOST_GATHERED`;
            0 if it is to take what there is.
        between: seconds from one that brought records to the next, on average, as far
            as `SEEMING`.
    """

    def __init__(self) -> None:
        self.least = 0
        self.between = SEEMING
        self._came_at = -NEVER
        self._apart = SEEMING

    def came(self, records: int, size: int, now: float, *, keeps_up: bool) -> None:
        """A fetch brought so many records, in so many bytes.

        `keeps_up` says that the application works them in moments.
        """
        self.least = 0
        if not records:
            return
        between = now - self._came_at
        self.between += (min(between, SEEMING) - self.between) * WEIGHT
        self._apart += (min(between / records, SEEMING) - self._apart) * WEIGHT
        self._came_at = now
        if keeps_up and self._apart < CROWD:
            apart = max(self._apart, NEAREST)
            self.least = int(GATHERED / apart * size / records)
