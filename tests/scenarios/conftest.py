"""Fixtures of the scenarios, which run on a real Kafka and on the embedded broker."""

from itertools import zip_longest

import pytest

from tests.kafka_plugin import Admin, Kafka


@pytest.fixture(scope="session")
def kafka(any_kafka: Kafka) -> Kafka:
    """One broker, shared by all tests: each test creates its own topics and groups."""
    return any_kafka


@pytest.fixture(scope="session")
def kafka3(any_kafka3: Kafka) -> Kafka:
    """Three brokers that tests may kill; stopped brokers are restarted afterwards."""
    return any_kafka3


@pytest.fixture
def admin(kafka: Kafka) -> Admin:
    """The admin client of the single broker."""
    return kafka.admin


@pytest.fixture
def admin3(kafka3: Kafka) -> Admin:
    """The admin client of the three brokers."""
    return kafka3.admin


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Order parallel tests: slow ones first, and tests of durations last.

    Slow and quick tests alternate, because a worker receives two tests at a time. Tests
    of durations run when the others are done.
    """
    if hasattr(config, "workerinput") and not config.getoption("loadgroup", False):
        last = [item for item in items if item.get_closest_marker("punctual")]
        others = [item for item in items if item not in last]
        slow = [item for item in others if item.get_closest_marker("slow")]
        slow.sort(key=_time_limit, reverse=True)
        quick = [item for item in others if item not in slow]
        pairs = zip_longest(slow, quick)
        items[:] = [item for pair in pairs for item in pair if item is not None] + last


def _time_limit(item: pytest.Item) -> float:
    """Return the timeout of a test in seconds; 0 if it has none."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0
