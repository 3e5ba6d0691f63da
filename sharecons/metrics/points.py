"""The metrics of a consumer at one time, as client telemetry has them (KIP-714)."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from sharecons.metrics.catalog import METRICS, MetricName

__all__ = ["MetricPoint", "points_of"]

_NO_ATTRIBUTES: Final[Mapping[str, str]] = MappingProxyType({})


class MetricPoint(NamedTuple):
    """The value of one metric at one time.

    Attributes:
        name: the name under which it is pushed, such as
            "org.apache.kafka.consumer.share.fetch.manager.fetch.total".
        kind: "counter" for a total that only grows, else "gauge".
    """

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    description: str
    value: float
    attributes: Mapping[str, str] = _NO_ATTRIBUTES


def points_of(values: Mapping[MetricName, float]) -> list[MetricPoint]:
    """Return the points of `consumer.metrics()`, in its order.

    An average or maximum without a value (NaN) has no point.
    """
    return [
        MetricPoint(
            metric.telemetry_name,
            metric.kind,
            metric.unit,
            metric.description,
            float(values[name]),
        )
        for name, metric in METRICS.items()
        if not math.isnan(values[name])
    ]
