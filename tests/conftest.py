"""Common to all tests: the installed package, event loops, and plugins.

`tests.kafka_plugin` has Kafka brokers, `tests.tiers` decides which tests run, and
`tests.reporting` reports the slowest.
"""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

# pytest puts the checkout first in sys.path, for `tests`. The tests use the installed
# `sharecons`, which can be compiled.
ROOT = str(Path(__file__).parent.parent)
sys.path[:] = [path for path in sys.path if path != ROOT] + [ROOT]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # In the background job of a shell script; tests send SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["tests.kafka_plugin", "tests.tiers", "tests.reporting"]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Run tests marked `anyio` on both event loops."""
    return request.param
