"""Fixtures: both Kafkas, and an admin client."""

import pytest

from sharecons import ShareGroupAdmin


@pytest.fixture
def kafka(any_kafka):
    return any_kafka


@pytest.fixture
def admin(kafka):
    return ShareGroupAdmin(bootstrap_servers=kafka.bootstrap_servers, timeout=15.0)
