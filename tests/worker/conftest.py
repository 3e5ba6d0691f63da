"""The event loop and the broker of the tests of a worker.

Waits take no time: the clock is virtual, except in tests with `on_real_clock`. `broker`
is in memory, without Kafka. Tests that need the protocol use `embedded`, whose clients
connect over memory. `BROKERS` of a module replaces `broker`: ("embedded",), or both.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from sharecons.testing.virtual_time import Backend
from tests.worker.memory import MemoryBroker
from tests.worker.working import AnyBroker

TOPICS: Final = ("orders", "orders.dead", "orders.retry")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    brokers = getattr(metafunc.module, "BROKERS", ())
    if brokers and "broker" in metafunc.fixturenames:
        metafunc.parametrize("broker", brokers, indirect=True)


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


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
    """A broker in memory, or one of the module's `BROKERS`."""
    if getattr(request, "param", "memory") == "memory":
        yield MemoryBroker(*TOPICS)
        return
    async with _embedded() as broker:
        yield broker
