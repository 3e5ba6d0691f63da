"""An embedded broker for each test module."""

import pytest

from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from tests.kafka_plugin import Admin


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker(settings=SETTINGS) as broker:
        yield broker


@pytest.fixture(scope="module")
def admin(broker):
    return Admin(broker.bootstrap_servers)
