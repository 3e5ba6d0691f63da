"""How long a fetch can wait at the broker."""

from typing import Final

__all__ = ["MaxWait"]

SHORT_WAIT: Final = 0.01
MAX_SHORT_WAIT: Final = 0.1
MAX_LOCK_FRACTION: Final = 0.25
"""The longest wait as a fraction of the lock duration: deadlines count from the
request, so records returned at the end of the wait must have most of it left."""


class MaxWait:
    """How long one leader's fetches can wait at the broker, in seconds.

    No request can overtake a waiting fetch. So it waits long only if no other request
    has to be sent. Otherwise the wait is short, and grows while fetches return nothing.

    Attributes:
        lock_timeout: the lock duration of acquired records.
    """

    def __init__(self, max_wait: float) -> None:
        self.lock_timeout = 30.0  # the broker's default, until a response has it
        self._max_wait = max_wait
        self._short_wait = SHORT_WAIT

    def on_response(self, *, useful: bool) -> None:
        """Handle a fetch response; `useful` if it had records or acknowledgements."""
        longer = min(self._short_wait * 2, MAX_SHORT_WAIT)
        self._short_wait = SHORT_WAIT if useful else longer

    def next(self, limit: float, until_request: float) -> float:
        """Return how long the next fetch can wait.

        Args:
            limit: the maximum in seconds.
            until_request: seconds until another request might have to be sent.
        """
        longest = min(limit, self._max_wait, self.lock_timeout * MAX_LOCK_FRACTION)
        return min(max(self._short_wait, until_request), longest)
