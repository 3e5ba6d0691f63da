"""Tests run on a virtual clock, unless their module has its own `anyio_backend`."""

from collections.abc import AsyncIterator

import pytest

from sharecons.testing import EmbeddedBroker
from sharecons.testing.virtual_time import Backend


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(listen=False) as broker:
        broker.create_topic("orders", partitions=3)
        yield broker
