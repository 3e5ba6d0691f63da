"""The table of a worker's metrics: names, labels, descriptions, and how to read them.

The names follow Prometheus' rules: base units (seconds, records), the unit at the end,
`_total` for counters. `sharecons.prometheus` exports them under these names.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, cast

from sharecons.histogram import Histogram
from sharecons.metrics.metric import Metric
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.worker.machine.meters import (
    DELIVERY_BOUNDS,
    LATENCY_BOUNDS,
    LOCK_BOUNDS,
    QUEUE_BOUNDS,
    Meters,
    TopicMeter,
)
from sharecons.worker.machine.worker_machine import WorkerMachine

__all__ = [
    "WORKER_METRICS",
    "MetricValues",
    "Observed",
    "WorkerMetricName",
    "values_of",
]

WorkerMetricName = Literal[
    "sharecons_worker_handler_duration_seconds",
    "sharecons_worker_queue_time_seconds",
    "sharecons_worker_lock_time_left_seconds",
    "sharecons_worker_acknowledgement_latency_seconds",
    "sharecons_worker_record_deliveries",
    "sharecons_worker_outcomes_total",
    "sharecons_worker_moved_total",
    "sharecons_worker_dead_letters_total",
    "sharecons_worker_deserialization_errors_total",
    "sharecons_worker_last_deliveries_total",
    "sharecons_worker_locks_lost_total",
    "sharecons_worker_renewals_total",
    "sharecons_worker_records_held",
    "sharecons_worker_records_running",
    "sharecons_worker_records_waiting_in_place",
    "sharecons_worker_records_waiting_in_retry_topics",
    "sharecons_worker_records_blocked",
    "sharecons_worker_full_handlers",
    "sharecons_worker_dead_letters_being_written",
    "sharecons_worker_abandoned_threads",
]

MetricValues = dict[tuple[str, ...], float | Histogram]
"""The values of a metric by the values of its labels."""


class Observed(NamedTuple):
    """The counters of a worker and its member; `machine` is None before the start."""

    meters: Meters
    recorder: MetricsRecorder
    machine: WorkerMachine | None
    abandoned_threads: int


def values_of(observed: Observed) -> Mapping[WorkerMetricName, MetricValues]:
    """Return the present values of all metrics; any thread can call this."""
    return {name: metric.read(observed) for name, metric in WORKER_METRICS.items()}


def _of_topic(
    name: WorkerMetricName,
    unit: str,
    description: str,
    read: Callable[[TopicMeter], MetricValues],
    *labels: str,
    bounds: tuple[float, ...] = (),
) -> Metric:
    """Return a metric with the label `topic`; `read` has the values of a topic."""

    def read_all(observed: Observed) -> MetricValues:
        # Copies in one step: the event loop's thread can add a topic meanwhile.
        topics = list(observed.meters.by_topic.items())
        return {
            (topic, *others): value
            for topic, meter in topics
            for others, value in read(meter).items()
        }

    kind: Literal["counter", "histogram"] = "histogram" if bounds else "counter"
    return Metric(name, kind, unit, description, read_all, ("topic", *labels), bounds)


def _gauge(
    name: WorkerMetricName,
    unit: str,
    description: str,
    read: Callable[[WorkerMachine], int],
) -> Metric:
    def read_one(observed: Observed) -> MetricValues:
        return {(): 0 if observed.machine is None else read(observed.machine)}

    return Metric(name, "gauge", unit, description, read_one)


def _by_label(counts: Mapping[str, int]) -> MetricValues:
    return {(label,): count for label, count in list(counts.items())}


_ALL: Final = (
    _of_topic(
        "sharecons_worker_handler_duration_seconds",
        "s",
        "Time of the calls of handlers with their middleware, once for each record",
        lambda meter: {
            (outcome,): durations.snapshot()
            for outcome, durations in list(meter.durations.items())
        },
        "outcome",
        bounds=LATENCY_BOUNDS,
    ),
    _of_topic(
        "sharecons_worker_queue_time_seconds",
        "s",
        "Time from the timestamp of a record to the start of its first attempt",
        lambda meter: {(): meter.queue_times.snapshot()},
        bounds=QUEUE_BOUNDS,
    ),
    _of_topic(
        "sharecons_worker_lock_time_left_seconds",
        "s",
        "Time left of the acquisition lock when a record is acknowledged",
        lambda meter: {(): meter.lock_times.snapshot()},
        bounds=LOCK_BOUNDS,
    ),
    Metric(
        "sharecons_worker_acknowledgement_latency_seconds",
        "histogram",
        "s",
        "Time from a request with acknowledgements to its response",
        lambda observed: {(): observed.meters.acknowledgement_latencies.snapshot()},
        bounds=LATENCY_BOUNDS,
    ),
    _of_topic(
        "sharecons_worker_record_deliveries",
        "deliveries",
        "Deliveries of the records that are accepted or rejected",
        lambda meter: {(): meter.deliveries.snapshot()},
        bounds=DELIVERY_BOUNDS,
    ),
    _of_topic(
        "sharecons_worker_outcomes_total",
        "outcomes",
        "Outcomes of records and of failed attempts, when they are decided",
        lambda meter: {
            ("accepted",): meter.accepted.snapshot().count,
            **_by_label(meter.outcomes),
        },
        "outcome",
    ),
    _of_topic(
        "sharecons_worker_moved_total",
        "records",
        "Records that were written to a retry topic, and accepted",
        lambda meter: _by_label(meter.moved),
        "retry_topic",
    ),
    _of_topic(
        "sharecons_worker_dead_letters_total",
        "records",
        "Dead letters that were written, by cause",
        lambda meter: _by_label(meter.dead_letters),
        "cause",
    ),
    _of_topic(
        "sharecons_worker_deserialization_errors_total",
        "records",
        "Records that a deserializer could not read",
        lambda meter: {(): meter.deserialization_errors},
    ),
    _of_topic(
        "sharecons_worker_last_deliveries_total",
        "records",
        "Records that were taken on their last delivery",
        lambda meter: {(): meter.last_deliveries},
    ),
    _of_topic(
        "sharecons_worker_locks_lost_total",
        "records",
        "Records whose lock ended while the worker held them",
        lambda meter: {(): meter.locks_lost},
    ),
    Metric(
        "sharecons_worker_renewals_total",
        "counter",
        "records",
        "Lock renewals sent",
        lambda observed: {(): observed.recorder.renewals},
    ),
    _gauge(
        "sharecons_worker_records_held",
        "records",
        "Records that are not settled: ready, running, waiting, blocked, copied",
        lambda machine: machine.scheduler.held_count,
    ),
    _gauge(
        "sharecons_worker_records_running",
        "records",
        "Records with a handler that runs now",
        lambda machine: machine.scheduler.running,
    ),
    _gauge(
        "sharecons_worker_records_waiting_in_place",
        "records",
        "Records that wait, locked, for their next attempt",
        lambda machine: machine.scheduler.waiting_in_place,
    ),
    _gauge(
        "sharecons_worker_records_waiting_in_retry_topics",
        "records",
        "Records of retry topics that were taken before they are due",
        lambda machine: machine.scheduler.waiting_in_retry_topics,
    ),
    _gauge(
        "sharecons_worker_records_blocked",
        "records",
        "Records that wait behind an earlier record with their key",
        lambda machine: machine.scheduler.blocked_count,
    ),
    _gauge(
        "sharecons_worker_full_handlers",
        "handlers",
        "Handlers that receive no further records until some that are held are settled",
        lambda machine: machine.scheduler.full_handlers,
    ),
    _gauge(
        "sharecons_worker_dead_letters_being_written",
        "records",
        "Dead letters whose write is not confirmed",
        lambda machine: machine.copies.dead_letter_count,
    ),
    Metric(
        "sharecons_worker_abandoned_threads",
        "gauge",
        "threads",
        "Threads of cancelled handlers that have not ended",
        lambda observed: {(): observed.abandoned_threads},
    ),
)

WORKER_METRICS: Final[Mapping[WorkerMetricName, Metric]] = MappingProxyType(
    {cast("WorkerMetricName", metric.name): metric for metric in _ALL}
)
"""All metrics of `worker.metrics()`, in its order."""
