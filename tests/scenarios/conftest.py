"""Short names for what the scenarios use most."""

import pytest

from tests.kafka_plugin import Admin, Kafka


@pytest.fixture
def admin(kafka: Kafka) -> Admin:
    """One broker."""
    return kafka.admin


@pytest.fixture
def admin3(kafka3: Kafka) -> Admin:
    """Three brokers."""
    return kafka3.admin
