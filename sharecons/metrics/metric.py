"""A metric: the row of a table that all outlets read.

The table of consumers is `catalog`, the table of workers `sharecons.worker.metrics`.
`metrics()`, Prometheus and client telemetry (KIP-714) list no metrics themselves.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

__all__ = ["Kind", "Metric", "MetricPoint"]

_NO_ATTRIBUTES: Final[Mapping[str, str]] = MappingProxyType({})

Kind = Literal["counter", "gauge", "histogram"]


class Metric(NamedTuple):
    """The description of a metric.

    Attributes:
        name: its key in `metrics()`.
        kind: "counter" for totals since the start, "gauge" for what is so now,
            "histogram".
        unit: of its values, "1" for a ratio.
        description: one sentence without a period.
        read: returns its present values; any thread can call it.
        labels: the names of its labels, in the order of the keys of its values.
        bounds: of the buckets of a histogram; () for other kinds.
        group: the group that KIP-932 gives it, or "sharecons-metrics"; "" for metrics
            that are not a consumer's.
        adds_up: the values of several consumers can be added up.
    """

    name: str
    kind: Kind
    unit: str
    description: str
    read: Callable[..., Any]
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    group: str = ""
    adds_up: bool = True

    @property
    def telemetry_name(self) -> str:
        """The name under which it is pushed to brokers (KIP-714)."""
        group = self.group.removesuffix("-metrics")
        name = self.name.removeprefix("sharecons-")  # the group has this prefix
        return f"org.apache.kafka.{group}.{name}".replace("-", ".")

    @property
    def prometheus_name(self) -> str:
        """The name under which Prometheus has it, in base units."""
        if not self.group:
            return self.name
        name = self.name.removeprefix("sharecons-").replace("-", "_")
        unit = "_seconds" if self.unit == "ms" else ""
        return f"sharecons_consumer_{name}{unit}"


class MetricPoint(NamedTuple):
    """The value of one metric at one time, for client telemetry (KIP-714).

    Attributes:
        name: the name under which it is pushed, such as
            "org.apache.kafka.consumer.share.fetch.manager.fetch.total".
    """

    name: str
    kind: Kind
    unit: str
    description: str
    value: float
    attributes: Mapping[str, str] = _NO_ATTRIBUTES
