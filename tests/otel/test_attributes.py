"""Names and values of attributes, without a client."""

import uuid
from email.message import Message
from urllib.error import HTTPError

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.semconv._incubating.attributes import messaging_attributes as names
from opentelemetry.semconv._incubating.metrics import messaging_metrics as metrics
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
from opentelemetry.semconv.schemas import Schemas

from sharecons import BrokerError, ConfigurationError, LockLostError, Record
from sharecons.otel import attributes
from sharecons.otel.attributes import (
    Conventions,
    error_type_of,
    key_text,
    record_attributes,
)
from sharecons.otel.deliveries import MAX_DELIVERIES, Deliveries
from sharecons.otel.operations import Instruments
from sharecons.testing import make_record
from tests.metrics.test_tables import documented


def record(offset: int = 7, *, delivery_count: int = 1, key: object = b"k") -> Record:
    return make_record(
        b"tea",
        key=key,
        topic="orders",
        partition=3,
        offset=offset,
        delivery_count=delivery_count,
    )


def test_names_are_those_of_the_conventions() -> None:
    assert {
        names.MESSAGING_SYSTEM: attributes.SYSTEM,
        names.MESSAGING_OPERATION_NAME: attributes.OPERATION_NAME,
        names.MESSAGING_OPERATION_TYPE: attributes.OPERATION_TYPE,
        names.MESSAGING_DESTINATION_NAME: attributes.DESTINATION,
        names.MESSAGING_DESTINATION_PARTITION_ID: attributes.PARTITION,
        names.MESSAGING_CONSUMER_GROUP_NAME: attributes.GROUP,
        names.MESSAGING_CLIENT_ID: attributes.CLIENT_ID,
        names.MESSAGING_KAFKA_OFFSET: attributes.OFFSET,
        names.MESSAGING_KAFKA_MESSAGE_KEY: attributes.KEY,
        names.MESSAGING_KAFKA_MESSAGE_TOMBSTONE: attributes.TOMBSTONE,
        names.MESSAGING_BATCH_MESSAGE_COUNT: attributes.BATCH_MESSAGE_COUNT,
        ERROR_TYPE: attributes.ERROR_TYPE,
    } == {
        each: each
        for each in (
            attributes.SYSTEM,
            attributes.OPERATION_NAME,
            attributes.OPERATION_TYPE,
            attributes.DESTINATION,
            attributes.PARTITION,
            attributes.GROUP,
            attributes.CLIENT_ID,
            attributes.OFFSET,
            attributes.KEY,
            attributes.TOMBSTONE,
            attributes.BATCH_MESSAGE_COUNT,
            attributes.ERROR_TYPE,
        )
    }
    assert "messaging.kafka.cluster.id" == attributes.CLUSTER_ID


def test_metrics_are_those_of_the_conventions() -> None:
    found, expected = InMemoryMetricReader(), InMemoryMetricReader()
    instruments = Instruments.of(MeterProvider([found]))
    instruments.operation_duration.record(1)
    instruments.process_duration.record(1)
    instruments.consumed_messages.add(1)
    instruments.sent_messages.add(1)
    meter = MeterProvider([expected]).get_meter("conventions")
    metrics.create_messaging_client_operation_duration(meter).record(1)
    metrics.create_messaging_process_duration(meter).record(1)
    metrics.create_messaging_client_consumed_messages(meter).add(1)
    metrics.create_messaging_client_sent_messages(meter).add(1)

    own = described(found)
    assert described(expected) == own
    pages = documented("opentelemetry.md").items()
    assert sorted((name, row["unit"]) for name, row in pages) == [m[:2] for m in own]


def test_messages_of_all_clients_of_a_provider_are_counted() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    for count in (3, 4):
        instruments = Instruments.of(provider)
        instruments.consumed_messages.add(count)
        instruments.sent_messages.add(count)

    assert {
        "messaging.client.consumed.messages": 7,
        "messaging.client.sent.messages": 7,
    } == totals(reader)


def totals(reader: InMemoryMetricReader) -> dict[str, float]:
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: sum(point.value for point in metric.data.data_points)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def described(reader: InMemoryMetricReader) -> list[tuple[str, str | None, str | None]]:
    data = reader.get_metrics_data()
    assert data is not None
    return sorted(
        (metric.name, metric.unit, metric.description)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    )


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (b"tea", "tea"),
        (b"\xff", None),
        (None, None),
        ("tea", "tea"),
        (7, "7"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({"id": 7}, None),
    ],
)
def test_key_without_a_canonical_text_is_left_out(key: object, text: str) -> None:
    assert text == key_text(key)
    assert text == record_attributes(record(key=key)).get(attributes.KEY)


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ValueError(), "ValueError"),
        (LockLostError(), "sharecons.errors.LockLostError"),
        (BrokerError("no", code=3, name="UNKNOWN_TOPIC"), "UNKNOWN_TOPIC"),
        (ConfigurationError("no"), "sharecons.errors.ConfigurationError"),
        (ModuleNotFoundError(name="tea"), "ModuleNotFoundError"),
        (HTTPError("", 404, "", Message(), None), "urllib.error.HTTPError"),
    ],
)
def test_error_type_is_kafkas_name_or_the_class(
    error: BaseException, name: str
) -> None:
    assert name == error_type_of(error)


@pytest.mark.parametrize(
    ("value", "selected"),
    [
        ("", Conventions.V1_44),
        ("http", Conventions.V1_44),
        ("http, messaging", Conventions.V1_45),
        ("http, messaging/dup", Conventions.ALL),
        ("messaging,messaging/dup", Conventions.ALL),
    ],
)
def test_environment_selects_the_version_of_the_conventions(
    monkeypatch: pytest.MonkeyPatch, value: str, selected: Conventions
) -> None:
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", value)

    assert selected is Conventions.selected()


RECEIVED = {
    **record_attributes(record()),
    attributes.SYSTEM: "kafka",
    attributes.CLUSTER_ID: "till-cluster",
    attributes.TOMBSTONE: True,
    attributes.OPERATION_TYPE: "send",
    attributes.CLIENT_ID: "till",
    attributes.GROUP: "billing",
}
OF_1_45 = {
    "messaging.system.name": "kafka",
    "kafka.offset": 7,
    "kafka.message.key": "k",
    "kafka.message.tombstone": True,
    "kafka.cluster.id": "till-cluster",
}
RENAMED = ("SYSTEM", "OFFSET", "KEY", "TOMBSTONE", "CLUSTER_ID")


def test_default_names_are_of_version_1_44() -> None:
    assert RECEIVED == Conventions.V1_44.of_span(RECEIVED)
    assert Schemas.V1_44_0.value == Conventions.V1_44.schema_url


def test_version_1_45_replaces_the_five_names_that_it_has_changed() -> None:
    renamed = {getattr(attributes, name) for name in RENAMED}
    kept = {name: each for name, each in RECEIVED.items() if name not in renamed}

    assert {**kept, **OF_1_45} == Conventions.V1_45.of_span(RECEIVED)
    assert {"messaging.system.name": "kafka"} == Conventions.V1_45.of_metric(
        {attributes.SYSTEM: "kafka"}
    )
    assert "https://opentelemetry.io/schemas/1.45.0" == Conventions.V1_45.schema_url


def test_all_names_have_the_same_values() -> None:
    assert {
        **RECEIVED,
        **OF_1_45,
        "messaging.operation": "publish",
        "messaging.client_id": "till",
        "messaging.kafka.consumer.group": "billing",
        "messaging.kafka.message.offset": 7,
        "messaging.kafka.destination.partition": 3,
    } == Conventions.ALL.of_span(RECEIVED)
    assert {"messaging.system": "kafka", "messaging.system.name": "kafka"} == (
        Conventions.ALL.of_metric({attributes.SYSTEM: "kafka"})
    )


# Deliveries.


def test_another_delivery_replaces_the_one_before() -> None:
    deliveries = Deliveries()
    first, _ = deliveries.add(record(), None)
    assert (first, False) == deliveries.add(record(), None)
    second, is_new = deliveries.add(record(delivery_count=2), None)
    deliveries.remove("orders", 3, 7, first)

    assert is_new
    assert second is deliveries.find("orders", 3, 7)
    deliveries.remove("orders", 3, 7, second)
    assert 0 == len(deliveries)


def test_oldest_deliveries_are_forgotten_above_the_limit() -> None:
    deliveries = Deliveries()
    for offset in range(MAX_DELIVERIES + 1):
        deliveries.add(record(offset), None)

    assert MAX_DELIVERIES == len(deliveries)
    assert deliveries.find("orders", 3, 0) is None
    assert deliveries.find("orders", 3, 1) is not None
