"""Short names for what the scenarios use most; each of them runs on both Kafkas."""

from itertools import zip_longest

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
    """Side by side, the longest come first: the others fill the time beside them.

    Each worker is given two at a time, so every other place is for a quick one. Those
    that look at how long something takes come when the others are done.
    """
    if hasattr(config, "workerinput") and not config.getoption("loadgroup", False):
        last = [item for item in items if item.get_closest_marker("punctual")]
        others = [item for item in items if item not in last]
        slow = [item for item in others if item.get_closest_marker("slow")]
        slow.sort(key=_patience, reverse=True)
        quick = [item for item in others if item not in slow]
        pairs = zip_longest(slow, quick)
        items[:] = [item for pair in pairs for item in pair if item is not None] + last


def _patience(item: pytest.Item) -> float:
    """How long a test may take: what it says itself, if anything."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0
