"""Fixtures of the scenarios, which run on a real Kafka and on the embedded broker."""

import os
import random
import time
from collections.abc import AsyncIterator
from itertools import zip_longest
from typing import Any, Final

import pytest

from sharecons.net.io.event_loop import running_clock
from sharecons.testing import EmbeddedBroker
from sharecons.testing.kafka.settings import TEST_SETTINGS
from tests.kafka_plugin import Admin, Kafka
from tests.scenarios.embedded_admin import AnyAdmin, EmbeddedAdmin

START: Final = 1_800_000_000.0
"""The wall clock's time at the time 0 of an event loop, in seconds since the epoch."""


@pytest.fixture(scope="session")
def kafka(any_kafka: Kafka) -> Kafka:
    """One broker, shared by all tests: each test creates its own topics and groups."""
    return any_kafka


@pytest.fixture(scope="session")
def kafka3(any_kafka3: Kafka) -> Kafka:
    """Three brokers that tests can kill; stopped brokers are restarted afterwards."""
    return any_kafka3


@pytest.fixture
def admin(kafka: Kafka) -> Admin:
    """The admin client of the single broker."""
    return kafka.admin


@pytest.fixture
def admin3(kafka3: Kafka) -> Admin:
    """The admin client of the three brokers."""
    return kafka3.admin


@pytest.fixture
def real_admin(request: pytest.FixtureRequest, anyio_backend: Any) -> Admin | None:
    """The admin of a real Kafka; None on an event loop with a virtual clock."""
    if not isinstance(anyio_backend, str):
        return None
    kafka: Kafka = request.getfixturevalue("real_kafka")
    return kafka.admin


@pytest.fixture
async def any_admin(real_admin: Admin | None) -> AsyncIterator[AnyAdmin]:
    """The admin of a real Kafka, or of an embedded broker in virtual time."""
    if real_admin is not None:
        yield real_admin
        return
    async with EmbeddedBroker(settings=TEST_SETTINGS, listen=False) as broker:
        yield EmbeddedAdmin(broker)


@pytest.fixture
async def wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the wall clock, with which due times are written, follow the virtual one.

    It begins at START: due times are rounded to milliseconds.
    """
    clock = running_clock()
    monkeypatch.setattr(time, "time", lambda: START + clock())
    monkeypatch.setattr(time, "time_ns", lambda: round((START + clock()) * 1e9))


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


@pytest.fixture
def seeded(seed: int, monkeypatch: pytest.MonkeyPatch, anyio_backend: Any) -> None:
    """Seed the random numbers and ids of client and brokers, and trio's order."""
    random.seed(seed)
    ids = random.Random(f"ids {seed}")
    monkeypatch.setattr(os, "urandom", ids.randbytes)  # of uuid4
    if anyio_backend[0] == "trio":
        from trio._core import _run

        monkeypatch.setattr(_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
        _run._r.seed(seed)
