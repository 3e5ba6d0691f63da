"""Counts what becomes of a worker's records, for its metrics.

The machine and its shell find the meter of a record's topic in its item, so that no
record costs a lookup by labels. A worker without metrics has no meters.
"""

from collections.abc import Iterator, Sequence
from typing import Any, final

from sharecons.metrics.histogram import Histogram
from sharecons.metrics.histogram_recorder import HistogramRecorder
from sharecons.metrics.worker_catalog import (
    LATENCY_BOUNDS,
    WORKER_METRICS,
    WorkerMetricName,
)
from sharecons.worker.stats import WorkerStats
from sharecons.worker.topic_meter import TopicMeter

__all__ = ["Meters", "MetricValues", "WorkerMetrics", "add_gauges", "on_taken"]

MetricValues = dict[tuple[str, ...], float | Histogram]
"""The values of a metric by the values of its labels."""

WorkerMetrics = dict[WorkerMetricName, MetricValues]


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
    *,
    waiting_in_retry_topics: int = 0,
    blocked: int = 0,
    full_handlers: int = 0,
    dead_letters: int = 0,
) -> None:
    """Add what a worker has now.

    Args:
        waiting_in_retry_topics: the part of `stats.waiting` in retry topics.
        blocked: the records behind an earlier record of their key.
        full_handlers: the handlers that receive no further records.
        dead_letters: the dead letters that are being written.
    """
    in_place = max(0, stats.waiting - waiting_in_retry_topics)
    waiting = waiting_in_retry_topics
    values["sharecons_worker_records_held"][()] = stats.held
    values["sharecons_worker_records_running"][()] = stats.running
    values["sharecons_worker_records_waiting_in_place"][()] = in_place
    values["sharecons_worker_records_waiting_in_retry_topics"][()] = waiting
    values["sharecons_worker_records_blocked"][()] = blocked
    values["sharecons_worker_full_handlers"][()] = full_handlers
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
    yield "sharecons_worker_record_deliveries", (), meter.deliveries.snapshot()
    errors = meter.deserialization_errors
    yield "sharecons_worker_deserialization_errors_total", (), errors
    yield "sharecons_worker_last_deliveries_total", (), meter.last_deliveries
    yield "sharecons_worker_locks_lost_total", (), meter.locks_lost
