"""Decides where a record waits for its next attempt: the only place that does.

It waits in the worker, locked, if nothing forbids it. Otherwise it moves to a retry
topic, or is released. If the bytes that the handler's records can have are nearly used
up, it moves as well, but is not released: that would use up a delivery. So does a
suspect that waits for longer than it can be alone: it would lose its last deliveries to
records that end the process (see `isolation`), and its copy has new ones.
"""

from typing import Final, final

from sharecons.protocol.acknowledge.renewals import RenewalSchedule
from sharecons.worker.machine.isolation import LIMIT
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.window import WindowTracker
from sharecons.worker.outcomes import Moved, Released, RetryAfter

__all__ = ["EXPOSED", "FULL", "HELD_TOO_LONG", "LOCK_ENDS", "STALLS", "STOPS", "Waits"]

STALLS: Final = "it would stall its partition"
LOCK_ENDS: Final = "its lock ends before its next attempt, and is not renewed"
HELD_TOO_LONG: Final = "its max_lock_time ends before its next attempt"
EXPOSED: Final = "it would lose its last deliveries to a crash"
FULL: Final = "max_held_bytes is nearly reached"
STOPS: Final = "the worker stops"

LOCK_MARGIN: Final = 2.5
"""Seconds before the end of a lock that is not renewed in which its record moves."""


@final
class Waits:
    """Where records wait.

    Attributes:
        is_stopping: no record is held any longer for its next attempt.
    """

    def __init__(
        self, window: WindowTracker, renewals: RenewalSchedule[WorkItem]
    ) -> None:
        self._window = window
        self._renewals = renewals
        self.is_stopping = False

    def decide(
        self, item: WorkItem, retry: RetryAfter, now: float, *, is_suspect: bool = False
    ) -> RetryAfter | Moved | Released:
        """Return where a record waits: `retry` if it waits in the worker.

        Args:
            item: a record that has failed, or that waits already.
            is_suspect: its deliveries are nearly used up.
        """
        reason = self._why_not_here(item, retry.seconds, now, is_suspect)
        if reason is None:
            return retry
        topics = item.settings.retry_topics
        if topics and item.lane is None:
            topic = topics.topic_for(retry.seconds)
            return Moved(topic, retry.seconds, retry.attempt, retry.error)
        return Released(reason, retry.error)

    def _why_not_here(
        self, item: WorkItem, delay: float, now: float, is_suspect: bool
    ) -> str | None:
        """Return why a record cannot wait in the worker; None if it can."""
        if self.is_stopping:
            return STOPS
        # A record of a retry topic can be due after its lock ends. It is written once
        # more, but only shortly before: so records that wait already have a margin.
        waits = item.is_waiting
        lease_left = item.lease_end - now
        if lease_left <= (0.0 if waits else delay):
            return HELD_TOO_LONG
        lock_left = item.record.lock_deadline - now
        if (
            not self._renewals.renews
            and lock_left <= delay
            and not (waits and lock_left >= LOCK_MARGIN)
        ):
            return LOCK_ENDS
        if item.lane is not None:
            return None  # records with its key wait behind it
        if item.settings.retry_topics and is_suspect and delay > LIMIT:
            return EXPOSED
        # A retry topic is where records wait: they stay there until they are tried.
        if waits and item.origin is not None:
            return None
        if item.settings.retry_topics and item.queue.is_nearly_full:
            return FULL
        return None if self._window.can_wait(item, delay, now) else STALLS
