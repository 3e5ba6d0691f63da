"""Fixtures: groups on both Kafkas, and an admin client."""

import pytest

from sharecons.admin import ShareGroupAdmin


@pytest.fixture(scope="session")
def kafka(any_kafka):
    """One broker, shared by all tests: take topics and groups of your own."""
    return any_kafka


@pytest.fixture
async def admin(kafka):
    async with ShareGroupAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        yield admin
