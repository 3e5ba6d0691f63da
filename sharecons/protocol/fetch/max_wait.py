"""How long a fetch may wait at the broker (`max_wait_ms`).

No request can overtake a waiting fetch. So a fetch waits long only if the application
holds no records of this leader. Otherwise the wait is short, and grows while fetches
return nothing.
"""

from typing import Final

__all__ = ["MAX_LOCK_FRACTION", "MAX_SHORT_WAIT", "SHORT_WAIT", "MaxWait"]

SHORT_WAIT: Final = 0.01
MAX_SHORT_WAIT: Final = 0.1
MAX_LOCK_FRACTION: Final = 0.25
"""The longest wait as a fraction of the lock duration: deadlines count from the
request, so records returned at the end of the wait must have most of it left."""


class MaxWait:
    """The wait of one leader's fetches, in seconds.

    Attributes:
        lock_timeout: the lock duration of acquired records.
    """

    def __init__(self, max_wait: float) -> None:
        self.lock_timeout = (
            30.0  # share.record.lock.duration.ms, until a response has it
        )
        self._max_wait = max_wait
        self._short_wait = SHORT_WAIT

    def set_lock_timeout(self, lock_timeout: float) -> None:
        """Set the lock duration of a response; 0 if it has none."""
        self.lock_timeout = lock_timeout or self.lock_timeout

    def on_response(self, *, useful: bool) -> None:
        """Handle a fetch response; `useful` if it had records or acknowledgements."""
        longer = min(self._short_wait * 2, MAX_SHORT_WAIT)
        self._short_wait = SHORT_WAIT if useful else longer

    def next(self, limit: float, *, short: bool) -> float:
        """Return how long the next fetch may wait.

        Args:
            limit: the maximum in seconds.
            short: a request may have to be sent soon.
        """
        longest = min(limit, self._max_wait, self.lock_timeout * MAX_LOCK_FRACTION)
        return min(self._short_wait, longest) if short else longest
