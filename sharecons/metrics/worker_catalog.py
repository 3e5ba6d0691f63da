"""The metrics of a worker: their names, labels and descriptions.

The names follow Prometheus' rules: base units (seconds, records), the unit at the end,
`_total` for counters. `sharecons.prometheus` exports them under these names.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

__all__ = [
    "DELIVERY_BOUNDS",
    "LATENCY_BOUNDS",
    "LOCK_BOUNDS",
    "QUEUE_BOUNDS",
    "WORKER_METRICS",
    "WorkerMetric",
    "WorkerMetricName",
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

LATENCY_BOUNDS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
"""Seconds: from a handler without I/O to one that renews its lock."""

QUEUE_BOUNDS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    *(30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0),
)
"""Seconds: up to a day, after an outage or a reset of offsets."""

LOCK_BOUNDS: Final = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 60.0)
"""Seconds: Kafka's default of share.record.lock.duration.ms is 30 s, its minimum 15 s;
locks are renewed at half of it. A value of 0 is a lock that has ended."""

DELIVERY_BOUNDS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0)
"""Deliveries: the default of share.delivery.count.limit is 5, its maximum 10."""


class WorkerMetric(NamedTuple):
    """The description of a metric of a worker.

    Attributes:
        name: its key in `worker.metrics()`.
        kind: "counter" for totals since the worker was created, "gauge" for what is so
            now, "histogram".
        description: one sentence without a period.
        labels: the names of its labels, in the order of the keys of its values.
        bounds: of the buckets of a histogram; () for other kinds.
    """

    name: WorkerMetricName
    kind: Literal["counter", "gauge", "histogram"]
    description: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


def _histogram(
    name: WorkerMetricName,
    bounds: tuple[float, ...],
    description: str,
    labels: tuple[str, ...] = ("topic",),
) -> WorkerMetric:
    return WorkerMetric(name, "histogram", description, labels, bounds)


def _counter(
    name: WorkerMetricName, description: str, *labels: str, topic: bool = True
) -> WorkerMetric:
    first = ("topic",) if topic else ()
    return WorkerMetric(name, "counter", description, (*first, *labels))


def _gauge(name: WorkerMetricName, description: str) -> WorkerMetric:
    return WorkerMetric(name, "gauge", description)


_ALL: Final = (
    _histogram(
        "sharecons_worker_handler_duration_seconds",
        LATENCY_BOUNDS,
        "Time of the calls of handlers with their middleware, once for each record",
        ("topic", "outcome"),
    ),
    _histogram(
        "sharecons_worker_queue_time_seconds",
        QUEUE_BOUNDS,
        "Time from the timestamp of a record to the start of its first attempt",
    ),
    _histogram(
        "sharecons_worker_lock_time_left_seconds",
        LOCK_BOUNDS,
        "Time left of the acquisition lock when a record is acknowledged",
    ),
    _histogram(
        "sharecons_worker_acknowledgement_latency_seconds",
        LATENCY_BOUNDS,
        "Time from a request with acknowledgements to its response",
        (),
    ),
    _histogram(
        "sharecons_worker_record_deliveries",
        DELIVERY_BOUNDS,
        "Deliveries of the records that are accepted or rejected",
    ),
    _counter(
        "sharecons_worker_outcomes_total",
        "Outcomes of records and of failed attempts, when they are decided",
        "outcome",
    ),
    _counter(
        "sharecons_worker_moved_total",
        "Records that were written to a retry topic, and accepted",
        "retry_topic",
    ),
    _counter(
        "sharecons_worker_dead_letters_total",
        "Dead letters that were written, by cause",
        "cause",
    ),
    _counter(
        "sharecons_worker_deserialization_errors_total",
        "Records that a deserializer could not read",
    ),
    _counter(
        "sharecons_worker_last_deliveries_total",
        "Records that were taken on their last delivery",
    ),
    _counter(
        "sharecons_worker_locks_lost_total",
        "Records whose lock ended while the worker held them",
    ),
    _counter("sharecons_worker_renewals_total", "Lock renewals sent", topic=False),
    _gauge(
        "sharecons_worker_records_held",
        "Records that are not settled: ready, running, waiting, blocked, copied",
    ),
    _gauge("sharecons_worker_records_running", "Records with a handler that runs now"),
    _gauge(
        "sharecons_worker_records_waiting_in_place",
        "Records that wait, locked, for their next attempt",
    ),
    _gauge(
        "sharecons_worker_records_waiting_in_retry_topics",
        "Records of retry topics that were taken before they are due",
    ),
    _gauge(
        "sharecons_worker_records_blocked",
        "Records that wait behind an earlier record with their key",
    ),
    _gauge(
        "sharecons_worker_full_handlers",
        "Handlers that receive no further records until some that are held are settled",
    ),
    _gauge(
        "sharecons_worker_dead_letters_being_written",
        "Dead letters whose write is not confirmed",
    ),
    _gauge(
        "sharecons_worker_abandoned_threads",
        "Threads of cancelled handlers that have not ended",
    ),
)

WORKER_METRICS: Final[Mapping[WorkerMetricName, WorkerMetric]] = MappingProxyType(
    {metric.name: metric for metric in _ALL}
)
"""All metrics of `worker.metrics()`, in its order."""
