"""Administration of the module's broker, and its dead letters."""

from collections.abc import AsyncIterator

import pytest

from sharecons import ShareGroupAdmin
from sharecons.dead_letters import DeadLetters
from sharecons.testing import EmbeddedBroker
from tests.dead_letters.letters import DEAD


@pytest.fixture
async def admin(broker: EmbeddedBroker) -> AsyncIterator[ShareGroupAdmin]:
    async with ShareGroupAdmin(
        bootstrap_servers=broker.bootstrap_servers, network=broker.network
    ) as admin:
        yield admin


@pytest.fixture
def letters(admin: ShareGroupAdmin) -> DeadLetters:
    return DeadLetters.from_admin(admin, DEAD)
