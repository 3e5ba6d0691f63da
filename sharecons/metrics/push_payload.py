"""The payload of one push of client telemetry (KIP-714): contents and size.

A counter is pushed as its total, or with delta temporality as the difference since the
last push that the broker has accepted. A push that is rejected or lost is contained in
the next one. If the broker had received it and only the response was lost, the
difference is pushed twice, with the same start time: counted once too often rather than
lost.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, final

from sharecons.metrics.catalog import METRICS, MetricName
from sharecons.metrics.metric import MetricPoint
from sharecons.protocol.telemetry.push_cycle import Subscription
from sharecons.records.compression import Codec, compress

__all__ = ["Encode", "Payload", "PayloadBuilder", "Reading", "points_of"]


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


class Reading(NamedTuple):
    """A point with the seconds since the epoch at which its interval begins and ends.

    `is_delta` is true for a counter whose value is the difference in the interval.
    """

    point: MetricPoint
    start: float
    end: float
    is_delta: bool


Encode = Callable[[Sequence[Reading]], bytes]
"""Returns the OpenTelemetry MetricsData of some readings."""


class Payload(NamedTuple):
    """The bytes of a push; `left_out` counts the metrics that had no room."""

    data: bytes
    compression: int
    left_out: int
    totals: Mapping[str, tuple[float, float]]
    """The totals of the counters in it, and their times, by name."""


_EMPTY: Final = Payload(b"", Codec.NONE, 0, {})


@final
class PayloadBuilder:
    """Builds the payloads of one client.

    Args:
        started: when the client has begun to count, in seconds since the epoch.
    """

    def __init__(self, started: float) -> None:
        self._started = started
        self._pushed: dict[str, tuple[float, float]] = {}
        self._is_delta = False

    def build(
        self,
        subscription: Subscription,
        points: Sequence[MetricPoint],
        now: float,
        encode: Encode,
    ) -> Payload:
        """Return the payload of the selected points, at most `max_bytes` long.

        While it is longer, the later half of the points is left out. Without points it
        is empty, and not compressed.

        Args:
            now: seconds since the epoch.
        """
        if subscription.is_delta != self._is_delta:
            self._is_delta = subscription.is_delta
            self._pushed.clear()
        chosen = [point for point in points if subscription.selects(point.name)]
        count = len(chosen)
        while count:
            kept = chosen[:count]
            readings = [self._read(point, now) for point in kept]
            codec = Codec(subscription.compression)
            encoded = encode(readings)
            data = compress(codec, encoded)
            # Kafka 4.4 limits the decompressed size as well, and then rejects the push
            # with INVALID_RECORD, which ends telemetry.
            size = max(len(encoded), len(data))
            if not subscription.max_bytes or size <= subscription.max_bytes:
                totals = {
                    point.name: (point.value, now)
                    for point in kept
                    if point.kind == "counter"
                }
                return Payload(data, codec, len(chosen) - count, totals)
            count //= 2
        return _EMPTY._replace(left_out=len(chosen))

    def on_accepted(self, payload: Payload) -> None:
        """Let the next differences begin at this payload."""
        self._pushed.update(payload.totals)

    def _read(self, point: MetricPoint, now: float) -> Reading:
        if point.kind == "gauge":
            return Reading(point, now, now, False)
        if not self._is_delta:
            return Reading(point, self._started, now, False)
        total, since = self._pushed.get(point.name, (0.0, self._started))
        # A total that is smaller than before has begun again at 0.
        value = point.value - total if point.value >= total else point.value
        return Reading(point._replace(value=value), since, now, True)
