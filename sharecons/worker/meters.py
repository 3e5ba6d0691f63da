"""Counts what becomes of a worker's records, for its metrics.

The machine and its shell find the meter of a record's topic in its item, so that no
record costs a lookup by labels. A worker without metrics has no meters.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, final, get_args

from sharecons._record import RELEASE, AcknowledgeType
from sharecons.metrics.histogram import Histogram, HistogramRecorder
from sharecons.metrics.worker_catalog import (
    DELIVERY_BOUNDS,
    LATENCY_BOUNDS,
    LOCK_BOUNDS,
    QUEUE_BOUNDS,
    WORKER_METRICS,
    WorkerMetricName,
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
from sharecons.worker.stats import WorkerStats

__all__ = [
    "OUTCOME_NAMES",
    "Meters",
    "MetricValues",
    "TopicMeter",
    "WorkerMetrics",
    "add_gauges",
    "on_taken",
]

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

MetricValues = dict[tuple[str, ...], float | Histogram]
"""The values of a metric by the values of its labels."""

WorkerMetrics = dict[WorkerMetricName, MetricValues]


@final
class TopicMeter:
    """The figures of the records of one topic.

    Attributes:
        durations: seconds of handlers, by the outcome that followed.
        accepted: `durations` of accepted records.
        queue_times: seconds from timestamps to first attempts.
        lock_times: seconds left of locks at settlement.
        deliveries: of accepted and rejected records: how many had each delivery count.
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
        self.deliveries: Counter[int] = Counter()
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

    def on_accepted(self, record: Any, seconds: float, now: float) -> None:
        """Count a record whose handler has succeeded after `seconds`.

        This is called for each record: three calls of `HistogramRecorder.observe` would
        take twice as long as the counting.
        """
        times = self.accepted
        times.counts[bisect_left(LATENCY_BOUNDS, seconds)] += 1
        times.sum += seconds
        left = record.lock_deadline - now
        if left > 0.0:
            times = self.lock_times
            times.counts[bisect_left(LOCK_BOUNDS, left)] += 1
            times.sum += left
        else:  # -inf if the lock is lost
            self.lock_times.counts[0] += 1
        self.deliveries[record.delivery_count] += 1

    def on_first_attempt(self, record: Any, started: float) -> None:
        """Record the queue time of a record whose first attempt has ended.

        Records without a timestamp (-1) have none. A producer's clock can be ahead.

        Args:
            started: when its handler started, on the wall clock.
        """
        timestamp = record.timestamp
        if timestamp >= 0:
            seconds = started - timestamp / 1000.0
            if seconds < 0.0:
                seconds = 0.0
            times = self.queue_times
            times.counts[bisect_left(QUEUE_BOUNDS, seconds)] += 1
            times.sum += seconds

    def on_settled(self, record: Any, kind: AcknowledgeType) -> None:
        """Count an acknowledgement that does not follow from a handler's success."""
        self.lock_times.observe(record.lock_remaining)
        if kind is not RELEASE:
            self.deliveries[record.delivery_count] += 1


@final
class Meters:
    """The meters of a worker, by topic.

    Attributes:
        acknowledgement_latencies: seconds from requests to responses.
    """

    def __init__(self) -> None:
        self._by_topic: dict[str, TopicMeter] = {}
        self.acknowledgement_latencies = HistogramRecorder(LATENCY_BOUNDS)

    def of_topic(self, topic: str) -> TopicMeter:
        """Return the meter of a topic."""
        meter = self._by_topic.get(topic)
        if meter is None:
            meter = self._by_topic[topic] = TopicMeter()
        return meter

    def values(self) -> WorkerMetrics:
        """Return the values of histograms and counters; any thread can call this."""
        values: WorkerMetrics = {name: {} for name in WORKER_METRICS}
        latencies = self.acknowledgement_latencies.snapshot()
        values["sharecons_worker_acknowledgement_latency_seconds"][()] = latencies
        # Copies in one step: the event loop's thread can add a topic meanwhile.
        for topic, meter in list(self._by_topic.items()):
            for name, labels, value in _values_of(meter):
                values[name][topic, *labels] = value
        return values


def on_taken(items: Sequence[Any], delivery_limit: int) -> None:
    """Count the items of records that are on their last delivery."""
    for item in items:
        if item.record.delivery_count >= delivery_limit and item.meter is not None:
            item.meter.last_deliveries += 1


def add_gauges(
    values: WorkerMetrics,
    stats: WorkerStats,
    waiting_in_retry_topics: int = 0,
    dead_letters: int = 0,
) -> None:
    """Add what a worker has now.

    Args:
        waiting_in_retry_topics: the part of `stats.waiting` in retry topics.
        dead_letters: the dead letters that are being written.
    """
    in_place = max(0, stats.waiting - waiting_in_retry_topics)
    waiting = waiting_in_retry_topics
    values["sharecons_worker_records_held"][()] = stats.held
    values["sharecons_worker_records_running"][()] = stats.running
    values["sharecons_worker_records_waiting_in_place"][()] = in_place
    values["sharecons_worker_records_waiting_in_retry_topics"][()] = waiting
    values["sharecons_worker_dead_letters_being_written"][()] = dead_letters
    values["sharecons_worker_abandoned_threads"][()] = stats.abandoned_threads


def _values_of(
    meter: TopicMeter,
) -> Iterator[tuple[WorkerMetricName, tuple[str, ...], float | Histogram]]:
    """Yield the name, the labels after the topic, and the value of each figure."""
    for outcome, durations in list(meter.durations.items()):
        duration = durations.snapshot()
        yield "sharecons_worker_handler_duration_seconds", (outcome,), duration
        if outcome == "accepted":
            yield "sharecons_worker_outcomes_total", (outcome,), duration.count
    for outcome, count in list(meter.outcomes.items()):
        yield "sharecons_worker_outcomes_total", (outcome,), count
    for topic, count in list(meter.moved.items()):
        yield "sharecons_worker_moved_total", (topic,), count
    for cause, count in list(meter.dead_letters.items()):
        yield "sharecons_worker_dead_letters_total", (cause,), count
    yield "sharecons_worker_queue_time_seconds", (), meter.queue_times.snapshot()
    yield "sharecons_worker_lock_time_left_seconds", (), meter.lock_times.snapshot()
    deliveries = HistogramRecorder(DELIVERY_BOUNDS)
    for delivery_count, count in list(meter.deliveries.items()):
        deliveries.observe(delivery_count, count)
    yield "sharecons_worker_record_deliveries", (), deliveries.snapshot()
    errors = meter.deserialization_errors
    yield "sharecons_worker_deserialization_errors_total", (), errors
    yield "sharecons_worker_last_deliveries_total", (), meter.last_deliveries
    yield "sharecons_worker_locks_lost_total", (), meter.locks_lost
