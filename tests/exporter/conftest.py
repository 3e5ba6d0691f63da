"""Fixtures: both Kafkas, and an admin client."""

import uuid

import pytest

from sharecons import ShareGroupAdmin


@pytest.fixture(scope="session")
def kafka(any_kafka):
    return any_kafka


@pytest.fixture
def group():
    return f"group-{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def admin(kafka):
    async with ShareGroupAdmin(
        bootstrap_servers=kafka.bootstrap_servers, timeout=20
    ) as admin:
        yield admin
