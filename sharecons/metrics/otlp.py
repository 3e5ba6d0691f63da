"""Encodes metrics as OpenTelemetry's MetricsData v1, which KIP-714 prescribes.

Importing this needs the package opentelemetry-proto (the extra `telemetry`) and takes
20 ms, so it is imported only once a broker wants metrics.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    InstrumentationScope,
    KeyValue,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    MetricsData,
)

from sharecons.metrics.push_payload import Reading

__all__ = ["encoder"]

NANOSECONDS = 1_000_000_000


def encoder(
    resource: Mapping[str, str], version: str
) -> Callable[[Sequence[Reading]], bytes]:
    """Return a function that encodes readings.

    Args:
        resource: attributes of the client, such as group_id.
        version: of this package.
    """
    scope = InstrumentationScope(name="sharecons", version=version)
    attributes = _attributes(resource)

    def encode(readings: Sequence[Reading]) -> bytes:
        data = MetricsData()
        of_client = data.resource_metrics.add()
        of_client.resource.attributes.extend(attributes)
        in_scope = of_client.scope_metrics.add(scope=scope)
        for reading in readings:
            _fill(in_scope.metrics.add(), reading)
        encoded: bytes = data.SerializeToString()
        return encoded

    return encode


def _fill(metric: Any, reading: Reading) -> None:
    point = reading.point
    metric.name = point.name
    metric.unit = point.unit
    metric.description = point.description
    if point.kind == "counter":
        metric.sum.is_monotonic = True
        metric.sum.aggregation_temporality = (
            AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
            if reading.is_delta
            else AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
        )
        data_point = metric.sum.data_points.add()
        data_point.start_time_unix_nano = int(reading.start * NANOSECONDS)
    else:
        data_point = metric.gauge.data_points.add()
    data_point.time_unix_nano = int(reading.end * NANOSECONDS)
    data_point.as_double = point.value
    data_point.attributes.extend(_attributes(point.attributes))


def _attributes(values: Mapping[str, str]) -> list[KeyValue]:
    return [
        KeyValue(key=key, value=AnyValue(string_value=value))
        for key, value in values.items()
    ]
