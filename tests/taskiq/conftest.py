"""The tests of the taskiq broker run on asyncio, as taskiq does."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
