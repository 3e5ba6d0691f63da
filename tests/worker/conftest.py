"""The broker of a worker: an embedded one, whose clients connect over memory, or none.

A module with `BROKERS = ("embedded", "memory")` runs its tests with both, one with
`("memory",)` without Kafka. Its tests that need the protocol use `embedded`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from tests.worker.memory import MemoryBroker
from tests.worker.working import AnyBroker

TOPICS: Final = ("orders", "orders.dead", "orders.retry")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    brokers = getattr(metafunc.module, "BROKERS", ())
    if brokers and "broker" in metafunc.fixturenames:
        metafunc.parametrize("broker", brokers, indirect=True)


@asynccontextmanager
async def _embedded() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        for name in TOPICS:
            broker.create_topic(name, partitions=1)
        yield broker


@pytest.fixture
async def embedded() -> AsyncIterator[EmbeddedBroker]:
    """Clients need `network=embedded.network`; it also works on a virtual clock."""
    async with _embedded() as broker:
        yield broker


@pytest.fixture
async def broker(
    request: pytest.FixtureRequest,
) -> AsyncIterator[AnyBroker]:
    """An embedded broker, or one of the module's `BROKERS`."""
    if getattr(request, "param", "embedded") == "memory":
        yield MemoryBroker(*TOPICS)
        return
    async with _embedded() as broker:
        yield broker
