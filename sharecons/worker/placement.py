"""Decides where a failed record waits for its next attempt, and what a failure is.

Every decision is a function of its arguments: the policy, the window, the retry topics.
"""

import math
from typing import Final, Literal, final

from sharecons.worker.outcomes import Moved, Released, RetryAfter
from sharecons.worker.retry_topics import RetryTopics

__all__ = ["STOPS", "BatchGate", "Undeserializable", "place_retry"]

Undeserializable = Literal["dead_letter", "reject", "release"]

STALLS: Final = "it would stall its partition"
LOSES_LOCK: Final = "its lock or max_lease ends before its next attempt"
STOPS: Final = "the worker stops"


def place_retry(
    outcome: RetryAfter,
    *,
    is_leased: bool = True,
    can_wait: bool,
    topics: RetryTopics,
    key_order: bool = False,
    stopping: bool = False,
) -> RetryAfter | Moved | Released:
    """Return where a record waits for its next attempt.

    Args:
        is_leased: it keeps its lock, and the worker holds it, until the attempt.
        can_wait: it does not stall its partition while it waits.
        topics: where it can wait otherwise.
        key_order: records with the same key wait for it, so that it stays where it is.
        stopping: the worker holds no records any longer.
    """
    if not stopping and is_leased and (can_wait or key_order):
        return outcome
    if topics and not key_order:
        topic = topics.topic_for(outcome.seconds)
        return Moved(topic, outcome.seconds, outcome.attempt, outcome.error)
    if stopping:
        return Released(STOPS, outcome.error)
    return Released(STALLS if is_leased else LOSES_LOCK, outcome.error)


@final
class BatchGate:
    """Decides when a batch starts: when it is full, or when its first record waited.

    Args:
        max_records: of a batch.
        max_wait: seconds.
    """

    def __init__(self, max_records: int, max_wait: float) -> None:
        self._max_records = max_records
        self._max_wait = max_wait
        self._since: float | None = None

    def is_open(self, ready: int, now: float) -> bool:
        """Return whether a batch of `ready` records can start."""
        if not ready:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        return ready >= self._max_records or now >= self._since + self._max_wait

    def on_started(self) -> None:
        """Note that a batch has started; the records left begin to wait."""
        self._since = None

    def next_due(self) -> float:
        """Return when an incomplete batch can start; infinity if there is none."""
        return math.inf if self._since is None else self._since + self._max_wait
