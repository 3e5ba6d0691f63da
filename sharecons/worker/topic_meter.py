"""Counts what becomes of the records of one topic."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, final, get_args

from sharecons._record import RELEASE, AcknowledgeType, Record
from sharecons.metrics.histogram_recorder import HistogramRecorder
from sharecons.metrics.worker_catalog import (
    DELIVERY_BOUNDS,
    LATENCY_BOUNDS,
    LOCK_BOUNDS,
    QUEUE_BOUNDS,
)
from sharecons.worker.outcomes import (
    Accepted,
    DeadLetterCause,
    DeadLettered,
    LockLost,
    Moved,
    RecordOutcome,
    Rejected,
    Released,
    RetryAfter,
)

__all__ = ["OUTCOME_NAMES", "TopicMeter"]

OUTCOME_NAMES: Final[Mapping[type, str]] = {
    Accepted: "accepted",
    RetryAfter: "retried",
    Moved: "moved",
    Rejected: "rejected",
    DeadLettered: "dead_lettered",
    Released: "released",
    LockLost: "lock_lost",
}
"""The values of the label `outcome`."""

OTHER_OUTCOMES: Final = tuple(set(OUTCOME_NAMES.values()) - {"accepted"})


@final
class TopicMeter:
    """The figures of the records of one topic.

    Attributes:
        durations: seconds of handlers, by the outcome that followed.
        accepted: `durations` of accepted records.
        queue_times: seconds from timestamps to first attempts.
        lock_times: seconds left of locks at settlement.
        deliveries: delivery counts of accepted and rejected records.
        outcomes: decided ones, by name, except accepted ones: `accepted` counts them.
        moved: records written to retry topics, by topic.
        dead_letters: dead letters written, by cause.
    """

    __slots__ = (
        "accepted",
        "dead_letters",
        "deliveries",
        "deserialization_errors",
        "durations",
        "last_deliveries",
        "lock_times",
        "locks_lost",
        "moved",
        "outcomes",
        "queue_times",
    )

    def __init__(self) -> None:
        self.accepted = HistogramRecorder(LATENCY_BOUNDS)
        self.durations = {"accepted": self.accepted}
        self.queue_times = HistogramRecorder(QUEUE_BOUNDS)
        self.lock_times = HistogramRecorder(LOCK_BOUNDS)
        self.deliveries = HistogramRecorder(DELIVERY_BOUNDS)
        # From the start: Prometheus sees no increase from a missing value to 1.
        self.outcomes = Counter(dict.fromkeys(OTHER_OUTCOMES, 0))
        self.moved: Counter[str] = Counter()
        self.dead_letters = Counter(dict.fromkeys(get_args(DeadLetterCause), 0))
        self.deserialization_errors = 0
        self.last_deliveries = 0
        self.locks_lost = 0

    def on_outcome(self, outcome: RecordOutcome, seconds: float | None) -> None:
        """Count an outcome other than Accepted; `seconds` as in `OutcomeDecided`."""
        name = OUTCOME_NAMES[type(outcome)]
        self.outcomes[name] += 1
        if seconds is not None:
            if name not in self.durations:
                self.durations[name] = HistogramRecorder(LATENCY_BOUNDS)
            self.durations[name].observe(seconds)

    def on_lock_lost(self, was_called: bool) -> None:
        """Count a lost lock; it is an outcome if the handler was called."""
        self.locks_lost += 1
        if was_called:
            self.outcomes["lock_lost"] += 1

    def on_copied(self, outcome: Moved | DeadLettered) -> None:
        """Count a copy that is confirmed."""
        if isinstance(outcome, Moved):
            self.moved[outcome.topic] += 1
        else:
            self.dead_letters[outcome.cause] += 1

    def on_accepted(
        self,
        record: Record,
        attempt: int,
        seconds: float,
        now: float,
        clock_offset: float,
    ) -> None:
        """Count a record whose handler has succeeded after `seconds`.

        Args:
            record: as the broker delivered it.
            clock_offset: seconds from the clock of `now` to the wall clock.
        """
        self.accepted.observe(seconds)
        left = record.lock_deadline - now  # -inf if the lock is lost
        self.lock_times.observe(left if left > 0.0 else 0.0)
        self.deliveries.observe(float(record.delivery_count))
        if attempt == 1 and record.timestamp >= 0:
            age = now - seconds + clock_offset - record.timestamp / 1000.0
            self.queue_times.observe(age if age > 0.0 else 0.0)

    def on_first_attempt(self, record: Any, started: float) -> None:
        """Record the queue time of a record whose first attempt has failed.

        Records without a timestamp (-1) have none. A producer's clock can be ahead.

        Args:
            started: when its handler started, on the wall clock.
        """
        if record.timestamp >= 0:
            self.queue_times.observe(max(0.0, started - record.timestamp / 1000.0))

    def on_settled(self, record: Any, kind: AcknowledgeType) -> None:
        """Count an acknowledgement that does not follow from a handler's success."""
        self.lock_times.observe(record.lock_remaining)
        if kind is not RELEASE:
            self.deliveries.observe(float(record.delivery_count))
