"""An embedded broker, whose clients connect over memory."""

from collections.abc import AsyncIterator

import pytest

from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    """Clients need `network=broker.network`; it also works on a virtual clock."""
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        for name in ("orders", "orders.dead", "orders.retry"):
            broker.create_topic(name, partitions=1)
        yield broker
