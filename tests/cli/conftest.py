"""An embedded broker for each test module."""

import pytest

from sharecons.testing import EmbeddedBroker
from tests.kafka_plugin import Admin


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(scope="module")
def admin(broker):
    return Admin(broker.bootstrap_servers)
