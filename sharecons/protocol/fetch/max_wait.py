"""How long a fetch may wait at the broker.

Nothing can be sent past a waiting fetch. So one waits long only when there is nothing
of its leader's that the application may say something of, and for moments otherwise,
growing while nothing comes.
"""

from typing import Final

__all__ = ["MAX_LOCK_FRACTION", "MAX_SHORT_WAIT", "SHORT_WAIT", "MaxWait"]

SHORT_WAIT: Final = 0.01
MAX_SHORT_WAIT: Final = 0.1
MAX_LOCK_FRACTION: Final = 0.25
"""The longest wait, as a share of a lock's length: our clock of the lock begins with
the request, and what comes at the end of a wait must still have most of it."""


class MaxWait:
    """One leader's; times in seconds.

    Attributes:
        lock_timeout: how long the broker locks what it gives.
    """

    def __init__(self, max_wait: float) -> None:
        self.lock_timeout = 30.0  # share.record.lock.duration.ms, until told
        self._max_wait = max_wait
        self._short_wait = SHORT_WAIT

    def set_lock_timeout(self, lock_timeout: float) -> None:
        """The broker says how long it locks, or nothing of it (0)."""
        self.lock_timeout = lock_timeout or self.lock_timeout

    def on_response(self, *, useful: bool) -> None:
        """A fetch was answered; it was of use, or it waited in vain."""
        longer = min(self._short_wait * 2, MAX_SHORT_WAIT)
        self._short_wait = SHORT_WAIT if useful else longer

    def next(self, limit: float, *, short: bool) -> float:
        """Give how long the next fetch may wait, where others need no more than that.

        `short` says that there may soon be something to send.
        """
        longest = min(limit, self._max_wait, self.lock_timeout * MAX_LOCK_FRACTION)
        return min(self._short_wait, longest) if short else longest
