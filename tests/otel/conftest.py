"""An embedded broker without ports, and spans and metrics in memory."""

from collections.abc import AsyncIterator

import pytest
from opentelemetry import trace

from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from tests.otel.recorded import Recorded


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    """Clients need `network=broker.network`."""
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        for name in ("orders", "orders.dead", "orders.retry"):
            broker.create_topic(name, partitions=1)
        broker.set_group_config("billing", {"share.auto.offset.reset": "earliest"})
        yield broker


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


@pytest.fixture(autouse=True)
def no_span_stays_current() -> object:
    """Check after each test that no span was left attached."""
    yield
    assert trace.INVALID_SPAN is trace.get_current_span()
