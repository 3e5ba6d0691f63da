"""Fixtures: both Kafkas, a new group for each test, and an admin client."""

import uuid

import pytest

from sharecons import ShareGroupAdmin
from tests.kafka_plugin import Admin, Kafka


@pytest.fixture(scope="session")
def kafka(any_kafka: Kafka) -> Kafka:
    return any_kafka


@pytest.fixture
def tests_admin(kafka: Kafka) -> Admin:
    return kafka.admin


@pytest.fixture
def group():
    return f"group-{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def admin(kafka):
    async with ShareGroupAdmin(
        bootstrap_servers=kafka.bootstrap_servers, timeout=20
    ) as admin:
        yield admin
