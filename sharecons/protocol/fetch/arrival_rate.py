"""How far apart the records of one leader come, and what its next fetch makes of that.

Where they come in crowds, a fetch that is answered with the first of them leaves the
others for the next: many fetches, which bring little each. They are work for the broker
all the same, and on a machine that has no more to give, what is produced then waits for
it. So the broker is to wait until some are together, which it knows best.
"""

import math
from typing import Final

__all__ = ["DENSE_INTERVAL", "GATHER_TIME", "MAX_GATHER_TIME", "ArrivalRate"]

MAX_INTERVAL: Final = 0.006
WEIGHT: Final = 0.2
"""How many seconds one may seem at most to have been in coming, and how much that
counts. More than acknowledgements gather for: see `gathering`."""

DENSE_INTERVAL: Final = 0.0001
"""Seconds from record to record below which they are gathered: where they come at half
the rate, a broker has time for a fetch of each."""

MIN_INTERVAL: Final = 1e-9  # in virtual time they come at one instant

GATHER_TIME: Final = 0.002
MAX_GATHER_TIME: Final = 0.003
"""For how many seconds what comes is worth waiting for, and how long at most, should
less come. Measured at 20,000/s with all of it on two cores: of these 0.53 are idle with
one millisecond and 0.76 with two, and the client takes 0.25 or 0.16 of one. p50 is 1.4
to 1.9 ms and 2.0; how late the last hundredth is depends on what is idle."""


class ArrivalRate:
    """Says what is asked for; one for each leader.

    Attributes:
        least: how many bytes the next fetch waits for, at most for `MOST_GATHERED`;
            0 if it is to take what there is.
        between: seconds from one that brought records to the next, on average, as far
            as `SEEMING`.
    """

    def __init__(self) -> None:
        self.min_bytes = 0
        self.fetch_interval = MAX_INTERVAL
        self._last_arrival = -math.inf
        self._record_interval = MAX_INTERVAL

    def on_response(
        self, records: int, size: int, now: float, *, keeps_up: bool
    ) -> None:
        """A fetch brought so many records, in so many bytes.

        `keeps_up` says that the application works them in moments.
        """
        self.min_bytes = 0
        if not records:
            return
        between = now - self._last_arrival
        self.fetch_interval += (
            min(between, MAX_INTERVAL) - self.fetch_interval
        ) * WEIGHT
        self._record_interval += (
            min(between / records, MAX_INTERVAL) - self._record_interval
        ) * WEIGHT
        self._last_arrival = now
        if keeps_up and self._record_interval < DENSE_INTERVAL:
            apart = max(self._record_interval, MIN_INTERVAL)
            self.min_bytes = int(GATHER_TIME / apart * size / records)
