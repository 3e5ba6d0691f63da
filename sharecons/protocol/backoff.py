"""How long to wait after trouble, before the same is tried again.

Rule 1: every retry of this client waits for a `Backoff`; nothing retries at the
speed of a round trip.
Rule 2: no chance in here. A crowd of members is kept from marching in step by
`spread`, a factor that each draws once from its member id.
"""

from typing import Final
from zlib import crc32

__all__ = ["Backoff", "spread_of"]

INITIAL_DELAY: Final = 0.05
MAX_DELAY: Final = 1.0  # Kafka's retry.backoff.max.ms


def spread_of(member_id: str) -> float:
    """A factor between 0.8 and 1.2, as Kafka's own clients spread (KIP-580)."""
    return 0.8 + crc32(member_id.encode()) % 1000 / 2500


class Backoff:
    """Doubles from `first` to `limit` seconds; `reset` once something went well."""

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
        """Give this try's delay in seconds, and make the next one longer."""
        delay = self._next * self._spread
        self._next = min(self._next * 2, self._limit)
        return delay

    def reset(self) -> None:
        self._next = self._first
