from collections.abc import AsyncIterator

import pytest

from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS


@pytest.fixture
async def kafka() -> AsyncIterator[EmbeddedBroker]:
    from tests.taskiq.running import LOCK_MS  # imports taskiq, which is optional

    settings = {**SETTINGS, "group.share.min.record.lock.duration.ms": str(LOCK_MS)}
    async with EmbeddedBroker(settings=settings, listen=False) as kafka:
        kafka.create_topic("tasks", partitions=1)
        kafka.set_group_config(
            "workers", {"share.record.lock.duration.ms": str(LOCK_MS)}
        )
        yield kafka
