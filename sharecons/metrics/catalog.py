"""The metrics of a consumer: their names, units and descriptions.

The first three groups are the metrics of KIP-932, "Client metrics", with its names,
groups and meaning. The last group, whose names begin with `sharecons-`, is not Kafka's.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

__all__ = ["METRICS", "Metric", "MetricName"]

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


class Metric(NamedTuple):
    """The description of a metric.

    Attributes:
        name: its key in `consumer.metrics()`.
        group: the group that the KIP gives it, or "sharecons-metrics".
        kind: "counter" for totals since the consumer was created, else "gauge".
        unit: of its values, "1" for a ratio.
        description: one sentence without a period.
    """

    name: MetricName
    group: str
    kind: Literal["counter", "gauge"]
    unit: str
    description: str

    @property
    def telemetry_name(self) -> str:
        """The name under which it is pushed to brokers (KIP-714)."""
        group = self.group.removesuffix("-metrics")
        name = self.name.removeprefix("sharecons-")  # the group has this prefix
        return f"org.apache.kafka.{group}.{name}".replace("-", ".")

    @property
    def prometheus_name(self) -> str:
        """The name under which `sharecons.prometheus` exports it, in base units."""
        name = self.name.removeprefix("sharecons-").replace("-", "_")
        unit = "_seconds" if self.unit == "ms" else ""
        return f"sharecons_consumer_{name}{unit}"

    @property
    def adds_up(self) -> bool:
        """True if the values of several consumers can be added up."""
        is_count = self.name in ("sharecons-records-held", "sharecons-problems")
        return self.kind == "counter" or is_count


_POLL: Final = "consumer-share-metrics"
_COORDINATOR: Final = "consumer-share-coordinator-metrics"
_FETCH: Final = "consumer-share-fetch-manager-metrics"
_OWN: Final = "sharecons-metrics"


def _gauge(name: MetricName, group: str, unit: str, description: str) -> Metric:
    return Metric(name, group, "gauge", unit, description)


def _total(name: MetricName, group: str, unit: str, description: str) -> Metric:
    return Metric(name, group, "counter", unit, description)


_ALL: Final = (
    _gauge("last-poll-seconds-ago", _POLL, "s", "time since the last poll began"),
    _gauge(
        "time-between-poll-avg",
        _POLL,
        "ms",
        "average time from the start of a poll to the start of the next",
    ),
    _gauge(
        "time-between-poll-max",
        _POLL,
        "ms",
        "maximum time from the start of a poll to the start of the next",
    ),
    _gauge(
        "poll-idle-ratio-avg",
        _POLL,
        "1",
        "average fraction of time spent in polls, not in the application's code",
    ),
    _gauge(
        "heartbeat-response-time-max",
        _COORDINATOR,
        "ms",
        "maximum time from a heartbeat request to its response",
    ),
    _gauge("heartbeat-rate", _COORDINATOR, "1/s", "heartbeats per second"),
    _total("heartbeat-total", _COORDINATOR, "heartbeats", "heartbeats with a response"),
    _gauge(
        "last-heartbeat-seconds-ago",
        _COORDINATOR,
        "s",
        "time since the last heartbeat request",
    ),
    _total(
        "rebalance-total",
        _COORDINATOR,
        "rebalances",
        "assignments from the coordinator that differed from the one before",
    ),
    _gauge("rebalance-rate-per-hour", _COORDINATOR, "1/h", "rebalances per hour"),
    _gauge(
        "fetch-size-avg", _FETCH, "bytes", "average bytes of records per fetch response"
    ),
    _gauge(
        "fetch-size-max", _FETCH, "bytes", "maximum bytes of records per fetch response"
    ),
    _gauge(
        "bytes-fetched-rate", _FETCH, "bytes/s", "bytes of records fetched per second"
    ),
    _total("bytes-fetched-total", _FETCH, "bytes", "bytes of records fetched"),
    _gauge(
        "records-per-request-avg",
        _FETCH,
        "records",
        "average number of records per fetch response",
    ),
    _gauge(
        "records-per-request-max",
        _FETCH,
        "records",
        "maximum number of records per fetch response",
    ),
    _gauge("records-fetched-rate", _FETCH, "records/s", "records fetched per second"),
    _total("records-fetched-total", _FETCH, "records", "records fetched"),
    _gauge(
        "acknowledgements-send-rate",
        _FETCH,
        "acknowledgements/s",
        "acknowledgements sent per second, one per offset",
    ),
    _total(
        "acknowledgements-send-total",
        _FETCH,
        "acknowledgements",
        "acknowledgements sent, one per offset",
    ),
    _gauge(
        "acknowledgements-error-rate",
        _FETCH,
        "acknowledgements/s",
        "acknowledgements that failed per second, one per offset",
    ),
    _total(
        "acknowledgements-error-total",
        _FETCH,
        "acknowledgements",
        "acknowledgements that failed, one per offset",
    ),
    _gauge(
        "fetch-latency-avg",
        _FETCH,
        "ms",
        "average time from a fetch request to its response",
    ),
    _gauge(
        "fetch-latency-max",
        _FETCH,
        "ms",
        "maximum time from a fetch request to its response",
    ),
    _gauge("fetch-rate", _FETCH, "1/s", "fetches per second"),
    _total("fetch-total", _FETCH, "fetches", "fetches with a response"),
    _gauge(
        "fetch-throttle-time-avg",
        _FETCH,
        "ms",
        "average time that the broker delayed a fetch because of a quota",
    ),
    _gauge(
        "fetch-throttle-time-max",
        _FETCH,
        "ms",
        "maximum time that the broker delayed a fetch because of a quota",
    ),
    _gauge(
        "sharecons-records-held",
        _OWN,
        "records",
        "records locked for this consumer now, delivered or not",
    ),
    _gauge(
        "sharecons-problems",
        _OWN,
        "problems",
        "problems that last now and are logged as warnings",
    ),
    _total(
        "sharecons-records-released-unprocessed-total",
        _OWN,
        "records",
        "records released at closing because the application had not read them",
    ),
    _total(
        "sharecons-last-deliveries-unprocessed-total",
        _OWN,
        "records",
        "the part of them that was on its last delivery",
    ),
    _total(
        "sharecons-records-archived-total",
        _OWN,
        "records",
        "records archived because they were released on their last delivery",
    ),
    _total(
        "sharecons-damaged-records-rejected-total",
        _OWN,
        "records",
        "records rejected, and archived, because they were damaged at each delivery",
    ),
    _total("sharecons-renewals-total", _OWN, "records", "lock renewals sent"),
    _total(
        "sharecons-locks-lost-total",
        _OWN,
        "records",
        "records whose locks ended because the connection or session ended",
    ),
    _total(
        "sharecons-lock-overruns-total",
        _OWN,
        "records",
        "records whose locks ended because processing took too long",
    ),
)

METRICS: Final[Mapping[MetricName, Metric]] = MappingProxyType(
    {metric.name: metric for metric in _ALL}
)
"""All metrics of `consumer.metrics()`, in its order."""
