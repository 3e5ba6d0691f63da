"""Collectors in an application's own registry of prometheus-client."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sharecons import ShareConsumer, ShareWorker
from sharecons.errors import ConfigurationError
from sharecons.prometheus import ConsumerCollector, WorkerCollector
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from sharecons.testing.virtual_time import Backend
from sharecons.worker.metrics import WORKER_METRICS
from tests.waiting import until
from tests.worker.working import Handled, settled, working

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        broker.create_topic("orders", partitions=1)
        yield broker


def scrape(registry: CollectorRegistry) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return the values of an exposition by name and values of the labels."""
    text = generate_latest(registry).decode()
    samples = [
        sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]
    values = {(each.name, tuple(each.labels.values())): each.value for each in samples}
    assert len(samples) == len(values), "each series occurs once"
    return values


async def test_worker_is_scraped_beside_the_metrics_of_the_application(
    broker: EmbeddedBroker,
) -> None:
    registry = CollectorRegistry()
    Counter("app_orders", "Orders.", registry=registry).inc(7)
    broker.produce("orders", [b"x"] * 3)

    async with working(broker, Handled()) as worker:
        registry.register(WorkerCollector(worker, labels={"pod": "a"}))
        await until(lambda: settled(broker, 3))

        found = scrape(registry)

    assert 7 == found["app_orders_total", ()]
    labels = ("billing", "accepted", "a", "orders")
    assert 3 == found["sharecons_worker_outcomes_total", labels]
    durations = "sharecons_worker_handler_duration_seconds"
    assert 3 == found[f"{durations}_count", labels]
    bucket = ("billing", "+Inf", "accepted", "a", "orders")
    assert 3 == found[f"{durations}_bucket", bucket]
    assert 3 == found["sharecons_consumer_records_fetched_total", ("billing", "a")]
    exported = {name for name, _ in found}
    for name, metric in WORKER_METRICS.items():
        suffix = "_count" if metric.kind == "histogram" else ""
        is_rare = name == "sharecons_worker_moved_total"
        assert is_rare or f"{name}{suffix}" in exported


async def test_help_texts_are_the_descriptions() -> None:
    registry = CollectorRegistry()
    registry.register(WorkerCollector(new_worker()))

    text = generate_latest(registry).decode()

    metric = WORKER_METRICS["sharecons_worker_records_held"]
    assert f"# HELP {metric.name} {metric.description}.\n" in text
    assert f"# TYPE {metric.name} gauge\n" in text


def new_worker() -> ShareWorker[bytes, bytes]:
    return ShareWorker("orders", Handled(), group_id="billing")


async def test_workers_of_a_registry_are_added_up() -> None:
    registry = CollectorRegistry()
    registry.register(WorkerCollector(new_worker(), new_worker()))

    assert 0 == scrape(registry)["sharecons_worker_records_held", ("billing",)]


async def test_consumer_is_scraped(broker: EmbeddedBroker) -> None:
    registry = CollectorRegistry()
    broker.produce("orders", [b"x"] * 3)
    consumer = ShareConsumer(
        "orders",
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        network=broker.network,
        auto_offset_reset="earliest",
    )
    registry.register(ConsumerCollector(consumer))
    async with consumer:
        await consumer.poll(timeout=5.0)

        found = scrape(registry)
        expected = consumer.metrics()["records-fetched-total"]

    assert 0 < expected
    assert expected == found["sharecons_consumer_records_fetched_total", ("billing",)]
    seconds = found["sharecons_consumer_fetch_latency_max_seconds", ("billing",)]
    assert 0.0 <= seconds < 1.0


async def test_own_label_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="'topic' is one of the metrics' own"):
        WorkerCollector(new_worker(), labels={"topic": "a"})


@pytest.mark.parametrize("kind", [WorkerCollector, ConsumerCollector])
async def test_collector_of_nothing_is_an_error(kind: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{kind.__name__} needs a"):
        kind()
