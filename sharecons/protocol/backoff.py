"""Exponential backoff between retries.

Every retry of this client waits for a `Backoff`. Instead of random jitter, `spread`, a
factor derived from the member id, keeps members from retrying at the same time.
"""

from typing import Final
from zlib import crc32

__all__ = ["Backoff", "fraction_of", "spread_of"]

INITIAL_DELAY: Final = 0.05
MAX_DELAY: Final = 1.0  # Kafka's retry.backoff.max.ms


def spread_of(member_id: str) -> float:
    """Return a factor between 0.8 and 1.2, the jitter of Kafka's clients (KIP-580)."""
    return 0.8 + 0.4 * fraction_of(member_id)


def fraction_of(member_id: str) -> float:
    """Return a number from 0.0 to 0.999 that spreads members evenly."""
    return crc32(member_id.encode()) % 1000 / 1000


class Backoff:
    """A delay that doubles from `first` to `limit` seconds; `reset` after a success."""

    def __init__(
        self,
        spread: float = 1.0,
        *,
        first: float = INITIAL_DELAY,
        limit: float = MAX_DELAY,
    ) -> None:
        self._spread = spread
        self._first = first
        self._limit = limit
        self._next = first

    def next_delay(self) -> float:
        """Return the delay in seconds, and double the next one."""
        delay = self._next * self._spread
        self._next = min(self._next * 2, self._limit)
        return delay

    def reset(self) -> None:
        self._next = self._first
