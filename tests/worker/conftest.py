from collections.abc import AsyncIterator

import pytest

from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(settings=SETTINGS) as broker:
        for name in ("orders", "orders.dead", "orders.retry"):
            broker.create_topic(name, partitions=1)
        yield broker
