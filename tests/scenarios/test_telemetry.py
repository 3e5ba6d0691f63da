"""Metrics that a real Kafka collects from its clients (KIP-714)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from uuid import UUID

import anyio
import pytest

from sharecons import ShareConsumer
from sharecons.metrics import METRICS, ApplicationMetric, MetricName
from sharecons.testing import EmbeddedBroker
from tests.broker.java_tools import JavaTools
from tests.kafka_plugin import Admin
from tests.scenarios.embedded_admin import ON_ASYNCIO
from tests.scenarios.push_recorder import (
    RecordedPush,
    TelemetryKafka,
    telemetry_kafka,
)
from tests.scenarios.queue import Queue, take
from tests.scenarios.versions import since_4_2
from tests.waiting import until

pytestmark = [
    pytest.mark.anyio,
    ON_ASYNCIO,
    pytest.mark.kafka,
    pytest.mark.slow("starts a Kafka cluster with a reporter"),
]

INTERVAL: Final = 0.5
DEPTH: Final = ApplicationMetric(name="com.example.depth", read=lambda: 3)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelemetryKafka]:
    directory: Path = tmp_path_factory.mktemp("telemetry")
    with telemetry_kafka(directory, {"telemetry.max.bytes": "20000"}) as kafka:
        yield kafka


@pytest.fixture
def queue(kafka: TelemetryKafka) -> Queue:
    queue = Queue(Admin(kafka.bootstrap_servers))
    queue.produce([b"x"] * 20)
    return queue


def subscribe(kafka: TelemetryKafka, metrics: str, interval: float = INTERVAL) -> None:
    JavaTools(kafka.bootstrap_servers).run(
        "kafka-client-metrics",
        *("--alter", "--name", "all"),
        *("--metrics", metrics, "--interval", str(round(interval * 1000))),
    )


def totals(values: Mapping[MetricName, float]) -> dict[str, float]:
    return {
        metric.telemetry_name: values[name]
        for name, metric in METRICS.items()
        if metric.kind == "counter"
    }


def sums(pushes: list[RecordedPush]) -> dict[str, float]:
    names = totals(dict.fromkeys(METRICS, 0.0))
    return {name: sum(push.values.get(name, 0.0) for push in pushes) for name in names}


async def pushed(
    kafka: TelemetryKafka, client: UUID | None, count: int
) -> list[RecordedPush]:
    assert client is not None, "the broker collects no metrics"
    await until(lambda: len(kafka.pushes_of(client)) >= count, 20.0, pause=0.1)
    return kafka.pushes_of(client)


async def test_pushes_have_all_names_and_the_totals_of_metrics(
    kafka: TelemetryKafka, queue: Queue
) -> None:
    """The last push has the rest, and the broker has all totals."""
    subscribe(kafka, "*")
    async with queue.consumer() as consumer:
        consumer.register_metric(DEPTH)
        client = await consumer.client_instance_id()
        await take(aiter(consumer), 10)
        await pushed(kafka, client, 2)
        await take(aiter(consumer), 5)
        values = consumer.metrics()
        await pushed(kafka, client, 3)
    *others, last = await pushed(kafka, client, 4)

    assert last.terminating
    assert not any(push.terminating for push in others)
    assert totals(consumer.metrics()) == sums([*others, last])
    with_values = {
        METRICS[name].telemetry_name for name, value in values.items() if value == value
    }
    assert with_values | {DEPTH.name} <= set(last.values)
    assert last.values[DEPTH.name] == 3.0


async def test_changed_subscription_is_followed_without_loss(
    kafka: TelemetryKafka, queue: Queue
) -> None:
    """The broker rejects one push; the next ones have the metrics that it wants."""
    prefix = "org.apache.kafka.consumer.share.fetch.manager."
    subscribe(kafka, "*")
    async with queue.consumer() as consumer:
        client = await consumer.client_instance_id()
        await pushed(kafka, client, 1)
        await anyio.to_thread.run_sync(subscribe, kafka, prefix)
        await take(aiter(consumer), 10)
        count = len(kafka.pushes_of(client)) if client else 0
        pushes = await pushed(kafka, client, count + 3)

    assert all(name.startswith(prefix) for name in pushes[-1].values)
    expected = totals(consumer.metrics())
    found = sums(await pushed(kafka, client, len(pushes) + 1))
    fetched = [name for name in expected if name.startswith(prefix)]
    assert {name: expected[name] for name in fetched} == {
        name: found[name] for name in fetched
    }


async def test_metrics_beyond_telemetry_max_bytes_are_left_out(
    kafka: TelemetryKafka, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker's limit is 20,000 bytes; 100 metrics with long names exceed it."""
    subscribe(kafka, "*")
    async with queue.consumer() as consumer:
        for number in range(100):
            name = f"com.example.{'x' * 200}{number}"
            consumer.register_metric(ApplicationMetric(name=name, read=lambda: 1))
        client = await consumer.client_instance_id()
        pushes = await pushed(kafka, client, 2)

    assert 0 < len(pushes[0].values) < len(METRICS) + 100
    assert "telemetry.max.bytes" in caplog.text


@since_4_2
async def test_java_client_pushes_the_same_names_to_the_embedded_broker() -> None:
    with EmbeddedBroker(topics={"orders": 1}) as broker:
        broker.telemetry.subscribe("org.apache.kafka.consumer.share.", interval=0.2)
        broker.set_group_config("java", {"share.auto.offset.reset": "earliest"})
        broker.produce("orders", [b"x"] * 100)
        tools = JavaTools(broker.bootstrap_servers)
        await anyio.to_thread.run_sync(
            lambda: tools.run(
                "kafka-share-consumer-perf-test",
                *("--topic", "orders", "--group", "java"),
                *("--num-records", "100", "--timeout", "20000"),
                # Its limit is 500 ms, which are short beside other tests.
                harmless="couldn't complete it within 500 ms",
            )
        )
        names = {name for push in broker.telemetry.pushes for name in push.values}

        consumer: ShareConsumer = ShareConsumer(
            "orders",
            group_id="own",
            bootstrap_servers=broker.bootstrap_servers,
            auto_offset_reset="earliest",
        )
        async with consumer:
            await take(aiter(consumer), 10)
            client = await consumer.client_instance_id()
        own = {
            name
            for push in broker.telemetry.pushes
            if push.client_instance_id == client
            for name in push.values
        }

    # Java's client counts records when it delivers them, under other names.
    assert "org.apache.kafka.consumer.share.fetch.manager.fetch.total" in own
    assert {name.replace(".fetched.", ".consumed.") for name in own} - names == set()
