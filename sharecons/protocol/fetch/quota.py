"""How much a broker sends before its quota throttles responses."""

import math
from collections import deque
from typing import Final, final

__all__ = ["Quota"]

SPAN: Final = 10.0
"""Seconds over which a broker averages, at least."""

WINDOW: Final = 11.1
"""Seconds after the last response of a sample until its bytes count no more; with a
tenth to spare. A sample begins with a response and lasts SAMPLE seconds."""

SAMPLE: Final = 1.0

HOLD: Final = 60.0
MAX_HOLD: Final = 600.0

MAX_PAUSE: Final = 120.0
"""The maximum seconds between fetches while none of them returns records."""


@final
class Quota:
    """How many bytes a broker sends before its quota throttles, as estimated here.

    A response that exceeds the quota is empty, but its records were acquired: they stay
    locked, and use up a delivery. So no fetch is sent that is expected to exceed it.

    A broker adds up the bytes of the last eleven samples of one second, divides the sum
    by ten to eleven seconds, and throttles while the result exceeds the quota. So the
    quota follows from a throttled response: `received + lost` bytes took as long as the
    samples and the wait together. An estimate is kept for HOLD seconds, then for twice
    as long each time that it proves right again: a quota can be raised, or removed.

    Attributes:
        failures: throttled responses since the last one that brought something,
            without anything else received in the window before.
    """

    def __init__(self) -> None:
        self.failures = 0
        self._budget = 0
        self._samples: deque[tuple[float, float, int]] = deque()  # first, last, bytes
        self._sum = 0
        self._hold = HOLD
        self._known_until = -math.inf
        self._pause_until = -math.inf

    def is_known(self, now: float) -> bool:
        """Return whether a response was throttled recently."""
        return now < self._known_until

    def on_received(self, size: int, now: float) -> None:
        """Count a response that brought records."""
        self.failures = 0
        self._expire(now)
        self._sum += size
        if self._samples and now - self._samples[-1][0] < SAMPLE:
            first, _, before = self._samples[-1]
            self._samples[-1] = (first, now, before + size)
        else:
            self._samples.append((now, now, size))
        self._budget = max(self._budget, self._sum)

    def on_throttled(self, seconds: float, lost: int, now: float) -> None:
        """Learn from an empty response, which was throttled for `seconds`.

        Args:
            lost: the expected bytes of the response without throttling.
        """
        self._expire(now)
        if not self.is_known(now):
            self._hold = self._next_hold(now)
            self._known_until = now + self._hold
        self._budget = max(self._sum, self._estimate(seconds, lost))
        if not self._sum:
            self.failures += 1
            pause = WINDOW * 2.0 ** min(self.failures - 1, 10)
            self._pause_until = now + max(seconds, min(pause, MAX_PAUSE))

    def next_due(self, batch_size: int, now: float) -> float:
        """Return when a fetch of one batch with `batch_size` bytes fits the quota."""
        if now >= self._known_until:
            return now
        self._expire(now)
        excess = self._sum + min(batch_size, self._budget) - self._budget
        due = now
        for _, last, size in self._samples:
            if excess <= 0:
                break
            excess -= size
            due = last + WINDOW
        return max(due, self._pause_until)

    def limit_bytes(self, max_bytes: int, now: float) -> int:
        """Return how many bytes a fetch can request, `max_bytes` at most."""
        if now >= self._known_until:
            return max_bytes
        self._expire(now)
        return min(max_bytes, max(1, self._budget - self._sum))

    def _estimate(self, seconds: float, lost: int) -> int:
        """Return how many bytes fit in SPAN seconds."""
        estimate = (self._sum + lost) * SPAN / (SPAN + seconds)
        if lost > estimate and self._sum:
            # A broker reads at most the quota of SPAN, so less than that was lost.
            estimate = self._sum * SPAN / seconds
        return int(estimate)

    def _next_hold(self, now: float) -> float:
        if now - self._known_until > self._hold:
            return HOLD
        return min(2 * self._hold, MAX_HOLD)

    def _expire(self, now: float) -> None:
        while self._samples and now >= self._samples[0][1] + WINDOW:
            self._sum -= self._samples.popleft()[2]
