"""How long a fetch may wait at the broker.

Nothing can be sent past a waiting fetch. So one waits long only when there is nothing
of its leader's that the application may say something of, and for moments otherwise,
growing while nothing comes.
"""

from typing import Final

__all__ = ["LONGEST_SHORT_WAIT", "SHORT_WAIT", "WAIT_SHARE", "Waits"]

SHORT_WAIT: Final = 0.01
LONGEST_SHORT_WAIT: Final = 0.1
WAIT_SHARE: Final = 0.25
"""The longest wait, as a share of a lock's length: our clock of the lock begins with
the request, and what comes at the end of a wait must still have most of it."""


class Waits:
    """One leader's; times in seconds.

    Attributes:
        lock_timeout: how long the broker locks what it gives.
    """

    def __init__(self, longest: float) -> None:
        self.lock_timeout = 30.0  # share.record.lock.duration.ms, until told
        self._longest = longest
        self._short = SHORT_WAIT

    def told(self, lock_timeout: float) -> None:
        """The broker says how long it locks, or nothing of it (0)."""
        self.lock_timeout = lock_timeout or self.lock_timeout

    def ended(self, *, fruitful: bool) -> None:
        """A fetch was answered; it was of use, or it waited in vain."""
        longer = min(self._short * 2, LONGEST_SHORT_WAIT)
        self._short = SHORT_WAIT if fruitful else longer

    def next(self, most: float, *, short: bool) -> float:
        """Give how long the next fetch may wait, where others need no more than that.

        `short` says that there may soon be something to send.
        """
        longest = min(most, self._longest, self.lock_timeout * WAIT_SHARE)
        return min(self._short, longest) if short else longest
