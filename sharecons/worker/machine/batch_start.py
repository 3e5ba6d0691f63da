"""Decides when a batch starts: when it is full, or when its first record has waited."""

import math
from typing import final

__all__ = ["BatchStart"]


@final
class BatchStart:
    """The start of the next batch.

    Args:
        max_records: of a batch.
        max_wait: seconds.
    """

    def __init__(self, max_records: int, max_wait: float) -> None:
        self._max_records = max_records
        self._max_wait = max_wait
        self._since: float | None = None

    def is_due(self, ready: int, now: float) -> bool:
        """Return whether a batch of `ready` records can start."""
        if not ready:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        return ready >= self._max_records or now >= self._since + self._max_wait

    def on_started(self) -> None:
        """Start the wait of the remaining records, since a batch has started."""
        self._since = None

    def next_due(self) -> float:
        """Return when an incomplete batch can start; infinity if there is none."""
        return math.inf if self._since is None else self._since + self._max_wait
