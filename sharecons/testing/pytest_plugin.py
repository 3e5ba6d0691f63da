"""Fixtures for who tests programs that use share groups; pytest finds them by itself.

share_broker   one embedded broker, made anew for each test
share_cluster  three of them
virtual_clock  what `anyio_backend` may return so that waiting takes no time

pytest reads this at each start, so it loads nothing before a test asks for it. The
brokers have a thread of their own: plain tests and async ones use them alike, and so
do clients that block.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sharecons.testing import EmbeddedBroker
    from sharecons.testing.virtual_time import Backend

__all__ = ["share_broker", "share_cluster", "virtual_clock"]


@pytest.fixture
def share_broker() -> "Iterator[EmbeddedBroker]":
    """An embedded broker with nothing in it."""
    from sharecons.testing import EmbeddedBroker

    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def share_cluster() -> "Iterator[EmbeddedBroker]":
    """Three embedded brokers, whose ids are 1, 2 and 3."""
    from sharecons.testing import EmbeddedBroker

    with EmbeddedBroker(brokers=3) as brokers:
        yield brokers


@pytest.fixture(params=["asyncio", "trio"])
def virtual_clock(request: pytest.FixtureRequest) -> "Backend":
    """An event loop whose clock jumps over waiting, for anyio's pytest plugin:

        @pytest.fixture
        def anyio_backend(virtual_clock):
            return virtual_clock

    Let brokers run on it too, without sockets: `EmbeddedBroker(listen=False)`.
    """
    from sharecons.testing import virtual_time

    if request.param == "trio":
        pytest.importorskip("trio")
    return virtual_time.backend(request.param)
