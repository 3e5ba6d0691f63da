"""What all tests share: event loops, a real Kafka, and how hard Hypothesis tries."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.kafka_plugin"]

settings.register_profile(
    "quick",
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", parent=settings.get_profile("quick"), max_examples=2000
)
settings.load_profile(os.environ.get("SHARECONS_HYPOTHESIS", "quick"))


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Both event loops, for whatever is marked `anyio`."""
    return request.param
