"""An embedded broker, on asyncio: uvicorn runs on nothing else."""

import pytest

from sharecons.testing import EmbeddedBroker


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
async def broker():
    async with EmbeddedBroker(topics={"orders": 2}) as broker:
        yield broker
