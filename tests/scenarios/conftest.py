"""Short names for what the scenarios use most; each of them runs on both Kafkas."""

import pytest

from tests.kafka_plugin import Admin, Kafka


@pytest.fixture(scope="session")
def kafka(any_kafka: Kafka) -> Kafka:
    """One broker, shared by all tests: take topics and groups of your own."""
    return any_kafka


@pytest.fixture(scope="session")
def kafka3(any_kafka3: Kafka) -> Kafka:
    """Three brokers, to be killed: whatever a test leaves down is started again."""
    return any_kafka3


@pytest.fixture
def admin(kafka: Kafka) -> Admin:
    """One broker."""
    return kafka.admin


@pytest.fixture
def admin3(kafka3: Kafka) -> Admin:
    """Three brokers."""
    return kafka3.admin


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Side by side, the longest come first: the others fill the time beside them."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)
