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

MAX_DELIVERIES: Final = 10
"""The highest delivery count that is usual; Kafka's highest limit."""

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
        deliveries: how many accepted and rejected records had each delivery count.
        accepted_counts, lock_counts, queue_counts: the counts of these histograms.
        outcomes: decided ones, by name, except accepted ones: `accepted` counts them.
        moved: records written to retry topics, by topic.
        dead_letters: dead letters written, by cause.
    """

    __slots__ = (
        "accepted",
        "accepted_counts",
        "dead_letters",
        "deliveries",
        "deserialization_errors",
        "durations",
        "last_deliveries",
        "lock_counts",
        "lock_times",
        "locks_lost",
        "moved",
        "outcomes",
        "queue_counts",
        "queue_times",
    )

    def __init__(self) -> None:
        self.accepted = HistogramRecorder(LATENCY_BOUNDS)
        self.durations = {"accepted": self.accepted}
        self.queue_times = HistogramRecorder(QUEUE_BOUNDS)
        self.lock_times = HistogramRecorder(LOCK_BOUNDS)
        self.deliveries = [0] * (MAX_DELIVERIES + 1)
        self.accepted_counts = self.accepted.counts
        self.lock_counts = self.lock_times.counts
        self.queue_counts = self.queue_times.counts
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
        record: Any,
        attempt: int,
        seconds: float,
        now: float,
        clock_offset: float,
    ) -> None:
        """Count a record whose handler has succeeded after `seconds`.

        This is called for each record, so it contains no calls: calls of `observe`
        would take longer than the counting.

        Args:
            clock_offset: what the wall clock is ahead of the clock of `now`.
        """
        self.accepted_counts[bisect_left(LATENCY_BOUNDS, seconds)] += 1
        self.accepted.sum += seconds
        left = record.lock_deadline - now
        if left > 0.0:
            self.lock_counts[bisect_left(LOCK_BOUNDS, left)] += 1
            self.lock_times.sum += left
        else:  # -inf if the lock is lost
            self.lock_counts[0] += 1
        try:
            self.deliveries[record.delivery_count] += 1
        except IndexError:
            self._count_deliveries(record.delivery_count)
        if attempt == 1 and record.timestamp >= 0:
            age = now - seconds + clock_offset - record.timestamp / 1000.0
            if age > 0.0:
                self.queue_counts[bisect_left(QUEUE_BOUNDS, age)] += 1
                self.queue_times.sum += age
            else:
                self.queue_counts[0] += 1

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
            self._count_deliveries(record.delivery_count)

    def _count_deliveries(self, delivery_count: int) -> None:
        missing = delivery_count + 1 - len(self.deliveries)
        if missing > 0:
            self.deliveries += [0] * missing
        self.deliveries[delivery_count] += 1


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
        # The number of the attempt is never below the delivery count.
        if (
            item.attempt >= delivery_limit
            and item.record.delivery_count >= delivery_limit
            and item.meter is not None
        ):
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
    for delivery_count, count in enumerate(tuple(meter.deliveries)):
        deliveries.observe(delivery_count, count)
    yield "sharecons_worker_record_deliveries", (), deliveries.snapshot()
    errors = meter.deserialization_errors
    yield "sharecons_worker_deserialization_errors_total", (), errors
    yield "sharecons_worker_last_deliveries_total", (), meter.last_deliveries
    yield "sharecons_worker_locks_lost_total", (), meter.locks_lost
