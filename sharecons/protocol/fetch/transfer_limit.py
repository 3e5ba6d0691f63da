"""How many bytes arrive in time over a slow network.

A response that takes longer than the request timeout or the lock duration has used up a
delivery of all its records, and delivers none of them. The next one would be as large,
until the broker archives the records.

So the bytes of a fetch are limited to what arrived in TARGET seconds at the speed of
the response before. The time from a request to its response includes a wait at the
broker: it shows how slow the network is only if it is longer than this wait, otherwise
how fast it is at least.

A response can be small because of the limit: a broker divides it among the partitions,
and sends one batch if a batch is larger than a part. So small responses that are fast
double the limit.
"""

import math
from typing import Final, final

__all__ = ["MIN_LIMIT", "TransferLimit"]

TARGET: Final = 2.0
"""Seconds for a response to arrive, at most: after 4 s it counts as overdue."""

LOCK_FRACTION: Final = 1 / 6
"""The fraction of the lock duration for it, so that the records can be processed."""

MIN_LIMIT: Final = 64 << 10
"""The minimum limit in bytes. A broker returns a batch even if it is larger."""

MIN_MEASURED: Final = 16 << 10
"""Bytes from which a response is measured: a round trip takes most of the time of a
smaller one."""

GROWTH: Final = 2
"""The factor of the limit after a fast response that is too small to be measured."""

SLOW: Final = 0.5
"""Seconds beyond the wait at the broker from which the network is slow. A busy broker
or event loop delays responses by less."""

SHRINK: Final = 16
"""The divisor of the limit after a timeout: from 8 MiB it takes two to MIN_LIMIT."""


@final
class TransferLimit:
    """The limit of one leader's responses in bytes; infinity if nothing is known."""

    def __init__(self) -> None:
        self._limit = math.inf

    def on_received(
        self, size: int, seconds: float, max_wait: float, lock_duration: float
    ) -> None:
        """Measure a response.

        Args:
            size: its bytes.
            seconds: from the request to the response.
            max_wait: for how many seconds the broker could wait.
            lock_duration: for how many seconds records are locked; 0.0 if unknown.
        """
        is_slow = seconds - max_wait > SLOW
        if size < MIN_MEASURED:
            if not is_slow:
                self._limit *= GROWTH
            return
        target = min(TARGET, lock_duration * LOCK_FRACTION or TARGET)
        limit = max(MIN_LIMIT, size * target / max(seconds, 1e-6))
        self._limit = limit if is_slow else max(limit, self._limit)

    def on_timed_out(self, max_bytes: int) -> None:
        """Lower the limit after a fetch of this size did not arrive in time."""
        self._limit = max(MIN_LIMIT, min(self._limit, max_bytes) / SHRINK)

    def limit_bytes(self, max_bytes: int) -> int:
        """Return how many bytes a fetch can request, `max_bytes` at most."""
        return int(min(max_bytes, self._limit))
