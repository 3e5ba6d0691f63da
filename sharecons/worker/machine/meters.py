"""Counts what becomes of a worker's records, for its metrics.

The machine finds the meter of a record's topic in its item, so that no record costs a
lookup by labels. A worker without metrics has no meters. `sharecons.worker.metrics`
reads them, in any thread.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, final, get_args

from sharecons._record import RELEASE, AcknowledgeType, Record
from sharecons.histogram import HistogramRecorder
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

__all__ = ["OUTCOME_NAMES", "Meters", "TopicMeter"]

LATENCY_BOUNDS: Final[tuple[float, ...]] = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
"""Seconds: from a handler without I/O to one that renews its lock."""

QUEUE_BOUNDS: Final[tuple[float, ...]] = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    *(30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0),
)
"""Seconds: up to a day, after an outage or a reset of offsets."""

LOCK_BOUNDS: Final[tuple[float, ...]] = (
    *(0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 60.0),
)
"""Seconds: Kafka's default of share.record.lock.duration.ms is 30 s, its minimum 15 s;
locks are renewed at half of it. A value of 0 is a lock that has ended."""

DELIVERY_BOUNDS: Final[tuple[float, ...]] = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0)
"""Deliveries: the default of share.delivery.count.limit is 5, its maximum 10."""

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


@final
class Meters:
    """The meters of a worker.

    Attributes:
        by_topic: the meters of the topics with records.
        acknowledgement_latencies: seconds from requests to responses.
    """

    def __init__(self) -> None:
        self.by_topic: dict[str, TopicMeter] = {}
        self.acknowledgement_latencies = HistogramRecorder(LATENCY_BOUNDS)

    def of_topic(self, topic: str) -> TopicMeter:
        """Return the meter of a topic."""
        meter = self.by_topic.get(topic)
        if meter is None:
            meter = self.by_topic[topic] = TopicMeter()
        return meter

    def on_taken(self, items: Sequence[Any], delivery_limit: int) -> None:
        """Count the items of records that are on their last delivery."""
        for item in items:
            # The number of the attempt is never below the delivery count.
            if (
                item.attempt >= delivery_limit
                and item.record.delivery_count >= delivery_limit
            ):
                item.meter.last_deliveries += 1
