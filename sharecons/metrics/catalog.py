"""The table of a consumer's metrics: names, units, descriptions, and how to read them.

The first three groups are the metrics of KIP-932, "Client metrics", with its names,
groups and meaning. The last group, whose names begin with `sharecons-`, is not Kafka's.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal, cast

from sharecons.metrics.metric import Metric
from sharecons.metrics.recorder import NEVER, MetricsRecorder

__all__ = ["METRICS", "MetricName", "values_of"]

MetricName = Literal[
    "last-poll-seconds-ago",
    "time-between-poll-avg",
    "time-between-poll-max",
    "poll-idle-ratio-avg",
    "heartbeat-response-time-max",
    "heartbeat-rate",
    "heartbeat-total",
    "last-heartbeat-seconds-ago",
    "rebalance-total",
    "rebalance-rate-per-hour",
    "fetch-size-avg",
    "fetch-size-max",
    "bytes-fetched-rate",
    "bytes-fetched-total",
    "records-per-request-avg",
    "records-per-request-max",
    "records-fetched-rate",
    "records-fetched-total",
    "acknowledgements-send-rate",
    "acknowledgements-send-total",
    "acknowledgements-error-rate",
    "acknowledgements-error-total",
    "fetch-latency-avg",
    "fetch-latency-max",
    "fetch-rate",
    "fetch-total",
    "fetch-throttle-time-avg",
    "fetch-throttle-time-max",
    "sharecons-records-held",
    "sharecons-problems",
    "sharecons-records-released-unprocessed-total",
    "sharecons-last-deliveries-unprocessed-total",
    "sharecons-records-archived-total",
    "sharecons-damaged-records-rejected-total",
    "sharecons-renewals-total",
    "sharecons-locks-lost-total",
    "sharecons-lock-overruns-total",
]

MS: Final = 1000.0
HOUR: Final = 3600.0

Read = Callable[[MetricsRecorder, float], float]
"""Returns the value at a time on the consumer's clock."""


def _gauge(name: MetricName, unit: str, description: str, read: Read) -> Metric:
    return Metric(name, "gauge", unit, description, read, adds_up=False)


def _count(name: MetricName, unit: str, description: str, read: Read) -> Metric:
    return Metric(name, "gauge", unit, description, read)


def _total(name: MetricName, unit: str, description: str, read: Read) -> Metric:
    return Metric(name, "counter", unit, description, read)


def _of_group(group: str, *metrics: Metric) -> Iterator[Metric]:
    return (metric._replace(group=group) for metric in metrics)


def _since(then: float, now: float) -> float:
    """Return the time that has passed; -1.0 if there was no such event."""
    return now - then if then != NEVER else -1.0


_ALL: Final = (
    *_of_group(
        "consumer-share-metrics",
        _gauge(
            "last-poll-seconds-ago",
            "s",
            "time since the last poll began",
            lambda r, now: _since(r.last_poll, now),
        ),
        _gauge(
            "time-between-poll-avg",
            "ms",
            "average time from the start of a poll to the start of the next",
            lambda r, now: r.poll_intervals.average(now) * MS,
        ),
        _gauge(
            "time-between-poll-max",
            "ms",
            "maximum time from the start of a poll to the start of the next",
            lambda r, now: r.poll_intervals.maximum(now) * MS,
        ),
        _gauge(
            "poll-idle-ratio-avg",
            "1",
            "average fraction of time spent in polls, not in the application's code",
            lambda r, now: r.poll_idle_ratios.average(now),
        ),
    ),
    *_of_group(
        "consumer-share-coordinator-metrics",
        _gauge(
            "heartbeat-response-time-max",
            "ms",
            "maximum time from a heartbeat request to its response",
            lambda r, now: r.heartbeat_times.maximum(now) * MS,
        ),
        _gauge(
            "heartbeat-rate",
            "1/s",
            "heartbeats per second",
            lambda r, now: r.heartbeat_times.frequency(now),
        ),
        _total(
            "heartbeat-total",
            "heartbeats",
            "heartbeats with a response",
            lambda r, _: r.heartbeat_times.count,
        ),
        _gauge(
            "last-heartbeat-seconds-ago",
            "s",
            "time since the last heartbeat request",
            lambda r, now: _since(r.last_heartbeat, now),
        ),
        _total(
            "rebalance-total",
            "rebalances",
            "assignments from the coordinator that differed from the one before",
            lambda r, _: r.rebalances.count,
        ),
        _gauge(
            "rebalance-rate-per-hour",
            "1/h",
            "rebalances per hour",
            lambda r, now: r.rebalances.rate(now) * HOUR,
        ),
    ),
    *_of_group(
        "consumer-share-fetch-manager-metrics",
        _gauge(
            "fetch-size-avg",
            "bytes",
            "average bytes of records per fetch response",
            lambda r, now: r.fetch_sizes.average(now),
        ),
        _gauge(
            "fetch-size-max",
            "bytes",
            "maximum bytes of records per fetch response",
            lambda r, now: r.fetch_sizes.maximum(now),
        ),
        _gauge(
            "bytes-fetched-rate",
            "bytes/s",
            "bytes of records fetched per second",
            lambda r, now: r.fetch_sizes.rate(now),
        ),
        _total(
            "bytes-fetched-total",
            "bytes",
            "bytes of records fetched",
            lambda r, _: int(r.fetch_sizes.total),
        ),
        _gauge(
            "records-per-request-avg",
            "records",
            "average number of records per fetch response",
            lambda r, now: r.fetch_records.average(now),
        ),
        _gauge(
            "records-per-request-max",
            "records",
            "maximum number of records per fetch response",
            lambda r, now: r.fetch_records.maximum(now),
        ),
        _gauge(
            "records-fetched-rate",
            "records/s",
            "records fetched per second",
            lambda r, now: r.fetch_records.rate(now),
        ),
        _total(
            "records-fetched-total",
            "records",
            "records fetched",
            lambda r, _: int(r.fetch_records.total),
        ),
        _gauge(
            "acknowledgements-send-rate",
            "acknowledgements/s",
            "acknowledgements sent per second, one per offset",
            lambda r, now: r.acks_sent.rate(now),
        ),
        _total(
            "acknowledgements-send-total",
            "acknowledgements",
            "acknowledgements sent, one per offset",
            lambda r, _: int(r.acks_sent.total),
        ),
        _gauge(
            "acknowledgements-error-rate",
            "acknowledgements/s",
            "acknowledgements that failed per second, one per offset",
            lambda r, now: r.acks_failed.rate(now),
        ),
        _total(
            "acknowledgements-error-total",
            "acknowledgements",
            "acknowledgements that failed, one per offset",
            lambda r, _: int(r.acks_failed.total),
        ),
        _gauge(
            "fetch-latency-avg",
            "ms",
            "average time from a fetch request to its response",
            lambda r, now: r.fetch_latencies.average(now) * MS,
        ),
        _gauge(
            "fetch-latency-max",
            "ms",
            "maximum time from a fetch request to its response",
            lambda r, now: r.fetch_latencies.maximum(now) * MS,
        ),
        _gauge(
            "fetch-rate",
            "1/s",
            "fetches per second",
            lambda r, now: r.fetch_latencies.frequency(now),
        ),
        _total(
            "fetch-total",
            "fetches",
            "fetches with a response",
            lambda r, _: r.fetch_latencies.count,
        ),
        _gauge(
            "fetch-throttle-time-avg",
            "ms",
            "average time that the broker delayed a fetch because of a quota",
            lambda r, now: r.throttle_times.average(now) * MS,
        ),
        _gauge(
            "fetch-throttle-time-max",
            "ms",
            "maximum time that the broker delayed a fetch because of a quota",
            lambda r, now: r.throttle_times.maximum(now) * MS,
        ),
    ),
    *_of_group(
        "sharecons-metrics",
        _count(
            "sharecons-records-held",
            "records",
            "records locked for this consumer now, delivered or not",
            lambda r, _: r.held_records(),
        ),
        _count(
            "sharecons-problems",
            "problems",
            "problems that last now and are logged as warnings",
            lambda r, _: len(r.problems()),
        ),
        _total(
            "sharecons-records-released-unprocessed-total",
            "records",
            "records released at closing because the application had not read them",
            lambda r, _: r.released_unprocessed,
        ),
        _total(
            "sharecons-last-deliveries-unprocessed-total",
            "records",
            "the part of them that was on its last delivery",
            lambda r, _: r.last_deliveries_unprocessed,
        ),
        _total(
            "sharecons-records-archived-total",
            "records",
            "records archived because they were released on their last delivery",
            lambda r, _: r.archived,
        ),
        _total(
            "sharecons-damaged-records-rejected-total",
            "records",
            "records rejected, and archived, because they were damaged at each "
            "delivery",
            lambda r, _: r.damaged_rejected,
        ),
        _total(
            "sharecons-renewals-total",
            "records",
            "lock renewals sent",
            lambda r, _: r.renewals,
        ),
        _total(
            "sharecons-locks-lost-total",
            "records",
            "records whose locks ended because the connection or session ended",
            lambda r, _: r.locks_lost,
        ),
        _total(
            "sharecons-lock-overruns-total",
            "records",
            "records whose locks ended because processing took too long",
            lambda r, _: r.lock_overruns,
        ),
    ),
)

METRICS: Final[Mapping[MetricName, Metric]] = MappingProxyType(
    {cast("MetricName", metric.name): metric for metric in _ALL}
)
"""All metrics of `consumer.metrics()`, in its order."""


def values_of(recorder: MetricsRecorder) -> Mapping[MetricName, float]:
    """Return the present values of all metrics; any thread can call this."""
    now = recorder.clock() if recorder.clock is not None else 0.0
    return {name: metric.read(recorder, now) for name, metric in METRICS.items()}
