"""Common to all tests: event loops, a real Kafka, and Hypothesis profiles."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# pytest puts the checkout first in sys.path, for `tests`. The tests use the installed
# `sharecons`, which can be compiled.
ROOT = str(Path(__file__).parent.parent)
sys.path[:] = [path for path in sys.path if path != ROOT] + [ROOT]

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
    """Run tests marked `anyio` on both event loops."""
    return request.param


KAFKAS = 2  # number of pytest processes with a Kafka, for `--dist loadgroup`


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group the tests that share a Kafka, and those that share a Spark session.

    With `--dist loadgroup` each group belongs to one process. Its tests mostly wait, so
    the groups run side by side; more than KAFKAS would be short of memory and CPU.
    """
    modules: dict[Path, int] = {}
    for item in items:
        spark = "spark" in getattr(item, "fixturenames", ())
        if item.get_closest_marker("kafka"):
            # One of these processes also has a Spark session.
            turn = 0 if spark else modules.setdefault(item.path, len(modules))
            item.add_marker(pytest.mark.xdist_group(f"kafka-{turn % KAFKAS}"))
        elif spark:
            item.add_marker(pytest.mark.xdist_group("spark"))
