"""The payloads of client telemetry: selected metrics, totals, sizes."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from sharecons.metrics import METRICS
from sharecons.metrics.catalog import values_of
from sharecons.metrics.metric import MetricPoint
from sharecons.metrics.otlp import encoder
from sharecons.metrics.push_payload import Payload, PayloadBuilder, Reading, points_of
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.protocol.telemetry.push_cycle import Subscription
from sharecons.records.compression import Codec, decompress

STARTED = 1000.0
TOTAL = "org.apache.kafka.consumer.share.fetch.manager.fetch.total"


class Built:
    """Builds payloads; `readings` are in the last one."""

    def __init__(self) -> None:
        self.builder = PayloadBuilder(STARTED)
        self.readings: Sequence[Reading] = ()

    def build(
        self, points: Sequence[MetricPoint], now: float = 1060.0, **changes: Any
    ) -> Payload:
        return self.builder.build(subscription(**changes), points, now, self._encode)

    def _encode(self, readings: Sequence[Reading]) -> bytes:
        self.readings = readings
        return b"".join(b"%100d" % index for index, _ in enumerate(readings))

    def values(self) -> list[tuple[float, float, float]]:
        return [(each.point.value, each.start, each.end) for each in self.readings]


@pytest.fixture
def built() -> Built:
    return Built()


def subscription(**changes: Any) -> Subscription:
    values: dict[str, Any] = {
        "subscription_id": 1,
        "compression": 0,
        "interval": 60.0,
        "max_bytes": 0,
        "is_delta": True,
        "prefixes": ("*",),
        **changes,
    }
    return Subscription(**values)


def total(value: float, name: str = "a.total") -> MetricPoint:
    return MetricPoint(name, "counter", "1", "", value)


def gauge(value: float, name: str = "a.now") -> MetricPoint:
    return MetricPoint(name, "gauge", "1", "", value)


def test_points_are_all_metrics_that_have_a_value() -> None:
    points = points_of(values_of(MetricsRecorder()))

    names = {point.name for point in points}
    assert TOTAL in names
    averages = {
        metric.telemetry_name
        for name, metric in METRICS.items()
        if name.endswith(("-avg", "-max"))
    }
    assert names == {each.telemetry_name for each in METRICS.values()} - averages


def test_only_selected_points_are_read(built: Built) -> None:
    points = [total(1, "a.x"), total(2, "b.x"), gauge(3, "b.y"), gauge(4, "c.x")]

    built.build(points, prefixes=("b.", "c."))

    assert [each.point.name for each in built.readings] == ["b.x", "b.y", "c.x"]


def test_without_selected_points_the_payload_is_empty(built: Built) -> None:
    payload = built.build([total(1)], prefixes=("b.",), compression=4)

    assert payload == Payload(b"", Codec.NONE, 0, {})


def test_first_difference_is_the_whole_total(built: Built) -> None:
    built.build([total(5), gauge(3)])

    assert built.values() == [(5.0, STARTED, 1060.0), (3.0, 1060.0, 1060.0)]
    assert [each.is_delta for each in built.readings] == [True, False]


def test_next_difference_begins_at_the_accepted_push(built: Built) -> None:
    built.builder.on_accepted(built.build([total(5)]))

    built.build([total(12)], now=1120.0)

    assert built.values() == [(7.0, 1060.0, 1120.0)]


def test_rejected_push_is_contained_in_the_next_one(built: Built) -> None:
    built.builder.on_accepted(built.build([total(5)]))
    built.build([total(12)], now=1120.0)

    built.build([total(20)], now=1180.0)

    assert built.values() == [(15.0, 1060.0, 1180.0)]


def test_total_that_shrinks_has_begun_again(built: Built) -> None:
    built.builder.on_accepted(built.build([total(5)]))

    built.build([total(2)], now=1120.0)

    assert built.values() == [(2.0, 1060.0, 1120.0)]


def test_cumulative_totals_begin_with_the_client(built: Built) -> None:
    for now in (1060.0, 1120.0):
        built.builder.on_accepted(built.build([total(5)], now=now, is_delta=False))

        assert built.values() == [(5.0, STARTED, now)]
        assert not built.readings[0].is_delta


def test_changed_temporality_begins_again(built: Built) -> None:
    built.builder.on_accepted(built.build([total(5)]))
    built.builder.on_accepted(built.build([total(6)], is_delta=False))

    built.build([total(7)], now=1120.0)

    assert built.values() == [(7.0, STARTED, 1120.0)]


def test_points_without_room_are_left_out_and_their_differences_kept(
    built: Built,
) -> None:
    points = [total(1, f"t{number}") for number in range(8)]

    payload = built.build(points, max_bytes=399)
    assert len(payload.data) == 200
    assert payload.left_out == 6
    built.builder.on_accepted(payload)
    built.build([total(2, "t0"), total(2, "t7")], now=1120.0)

    assert built.values() == [(1.0, 1060.0, 1120.0), (2.0, STARTED, 1120.0)]


def test_nothing_has_room(built: Built) -> None:
    payload = built.build([total(1), gauge(2)], max_bytes=99)

    assert payload == Payload(b"", Codec.NONE, 2, {})


def test_size_is_limited_before_and_after_compression(built: Built) -> None:
    """Brokers limit both; 200 bytes of spaces and digits compress to far less."""
    points = [total(1, f"t{number}") for number in range(8)]

    payload = built.build(points, max_bytes=399, compression=Codec.ZSTD)

    assert payload.left_out == 6
    assert payload.compression == Codec.ZSTD
    assert len(payload.data) < 200
    assert len(decompress(Codec.ZSTD, payload.data)) == 200


def test_data_that_grows_by_compression_is_limited(built: Built) -> None:
    payload = built.build([total(1)], max_bytes=3, compression=Codec.GZIP)

    assert payload == Payload(b"", Codec.NONE, 1, {})


@pytest.fixture
def encode() -> Callable[[Sequence[Reading]], bytes]:
    return encoder({"group_id": "billing"}, "1.2")


def test_encoded_metrics(encode: Callable[[Sequence[Reading]], bytes]) -> None:
    labelled = gauge(0.5)._replace(attributes={"shard": "a"}, description="text")
    readings = [
        Reading(total(7), 1000.0, 1060.25, True),
        Reading(total(8, "b.total"), 1000.0, 1060.25, False),
        Reading(labelled, 1060.25, 1060.25, False),
    ]

    data = MetricsData.FromString(encode(readings))

    (of_client,) = data.resource_metrics
    assert [
        (each.key, each.value.string_value) for each in of_client.resource.attributes
    ] == [("group_id", "billing")]
    (in_scope,) = of_client.scope_metrics
    assert (in_scope.scope.name, in_scope.scope.version) == ("sharecons", "1.2")
    delta, cumulative, now = in_scope.metrics
    assert delta.sum.is_monotonic
    assert delta.sum.aggregation_temporality == 1
    assert cumulative.sum.aggregation_temporality == 2
    (point,) = delta.sum.data_points
    assert point.as_double == 7.0
    assert point.start_time_unix_nano == 1000 * 10**9
    assert point.time_unix_nano == 1060_250_000_000
    assert (now.name, now.unit, now.description) == ("a.now", "1", "text")
    (point,) = now.gauge.data_points
    assert point.as_double == 0.5
    assert point.attributes[0].key == "shard"
    assert point.attributes[0].value.string_value == "a"
