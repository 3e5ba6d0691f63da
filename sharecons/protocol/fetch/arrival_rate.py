"""How fast records arrive, and how many bytes a fetch waits for."""

import math
from typing import Final

__all__ = ["MAX_GATHER_TIME", "ArrivalRate"]

MAX_INTERVAL: Final = 0.006
WEIGHT: Final = 0.2
"""The limit in seconds of a measured interval, and the weight of a measurement. Longer
than acknowledgements linger: see `AckLinger`."""

DENSE_INTERVAL: Final = 0.0001
"""Seconds between records below which a fetch waits for several: at half the rate, a
broker has time for one fetch per record."""

MIN_INTERVAL: Final = 1e-9  # records can arrive at one instant in virtual time

GATHER_TIME: Final = 0.002
MAX_GATHER_TIME: Final = 0.003
"""Seconds of arrivals that a fetch waits for, and the longest wait if fewer arrive."""


class ArrivalRate:
    """The arrival rate of one leader's records, and the next fetch's `min_bytes`.

    If records arrive at a high rate, a fetch returns the first one and leaves the
    others to the next fetch: many fetches with few records each. They cost the broker
    CPU time, and on a machine without any to spare, producers wait for it. So the fetch
    lets the broker wait until several records are there.

    Attributes:
        min_bytes: how many bytes the next fetch waits for, for MAX_GATHER_TIME at most;
            0 if it waits for any record.
        fetch_interval: average seconds between responses with records, up to
            MAX_INTERVAL.
    """

    def __init__(self) -> None:
        self.min_bytes = 0
        self.fetch_interval = MAX_INTERVAL
        self._last_arrival = -math.inf
        self._record_interval = MAX_INTERVAL

    def on_response(
        self, records: int, size: int, now: float, *, keeps_up: bool
    ) -> None:
        """Handle a fetch response.

        Args:
            records, size: the number of records and their bytes.
            now: the time of the response.
            keeps_up: the application processes records about as fast as they arrive.
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
