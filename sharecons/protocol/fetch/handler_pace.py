"""Decides whether records are fetched before handlers are free.

A record that is fetched ahead waits in the buffer, locked but not renewed. So records
are fetched ahead only while handlers are fast: then the lock is long enough, and the
next record is there when a handler ends. Otherwise only the records are fetched that
can start now.
"""

from typing import Final, final

__all__ = ["HandlerPace"]

LOCK_FRACTION: Final = 0.25
"""The fraction of the lock within which a handler ends that counts as fast."""

BUSY_FRACTION: Final = 0.125
"""The fraction of the lock for which all handlers can be busy while records are
prefetched."""

WEIGHT: Final = 0.05
"""The weight of one call in the average."""


@final
class HandlerPace:
    """The durations of handlers; times in seconds."""

    def __init__(self) -> None:
        self._average: float | None = None
        self._busy_since: float | None = None

    def on_call_ended(self, seconds: float) -> None:
        """Add the duration of a handler to the average."""
        before = seconds if self._average is None else self._average
        self._average = before + (seconds - before) * WEIGHT

    def on_capacity(self, count: int, now: float) -> None:
        """Start or stop the time during which no further record could start."""
        if count:
            self._busy_since = None
        elif self._busy_since is None:
            self._busy_since = now

    def busy_until(self, lock_duration: float) -> float:
        """Return until when all handlers can be busy; the past if they are not."""
        if self._busy_since is None:
            return 0.0
        return self._busy_since + BUSY_FRACTION * lock_duration

    def fetches_ahead(self, lock_duration: float, now: float) -> bool:
        """Return whether records are fetched ahead.

        Args:
            lock_duration: 0.0 if it is not known yet.
        """
        if self._average is None or self._average > LOCK_FRACTION * lock_duration:
            return False
        return self._busy_since is None or now < self.busy_until(lock_duration)
