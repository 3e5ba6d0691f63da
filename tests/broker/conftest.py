"""Fixtures of several modules.

A module with `VIRTUAL_CLOCK = True` runs its async tests on a virtual clock.
"""

import pytest

from sharecons.testing import virtual_time
from tests.broker.either import BOTH, either_broker
from tests.broker.log_requests import Talk


@pytest.fixture(params=virtual_time.BACKENDS)
def anyio_backend(request):
    if getattr(request.module, "VIRTUAL_CLOCK", False):
        return virtual_time.backend(request.param)
    return request.param


@pytest.fixture(params=BOTH)
def either(request):
    """Return the embedded broker, and then a real Kafka, behind one interface."""
    return either_broker(request)


@pytest.fixture
def talk(either):
    """Send requests about logs to either broker."""
    return Talk(either)
