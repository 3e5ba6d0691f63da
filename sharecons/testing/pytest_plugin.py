"""Pytest fixtures for programs that use share groups; pytest finds them by itself.

share_broker   one embedded broker, new for each test
share_cluster  three embedded brokers
virtual_clock  a value for `anyio_backend` with which waiting takes no time

pytest imports this module at each start, so it imports nothing else before a test uses
a fixture. The brokers run in a thread, so that synchronous tests, async tests and
blocking clients can use them. Because of the thread they do not run on a virtual clock.
"""

from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    import pluggy

    from sharecons.testing import EmbeddedBroker
    from sharecons.testing.virtual_time import Backend

__all__ = ["share_broker", "share_cluster", "virtual_clock"]

SETTINGS: Final[Mapping[str, str]] = {
    # Partitions are assigned immediately. Kafka's defaults are 1 s and 5 s.
    "group.share.assignment.interval.ms": "0",
    "group.share.heartbeat.interval.ms": "100",
}

MARK: Final = (
    "mark the test with @pytest.mark.anyio, or with @pytest.mark.asyncio for "
    "pytest-asyncio"
)


@pytest.fixture
def share_broker(request: pytest.FixtureRequest) -> "Iterator[EmbeddedBroker]":
    """An embedded broker without topics, which assigns partitions immediately."""
    _check_clock(request)
    from sharecons.testing import EmbeddedBroker

    with EmbeddedBroker(settings=SETTINGS) as broker:
        yield broker


@pytest.fixture
def share_cluster(request: pytest.FixtureRequest) -> "Iterator[EmbeddedBroker]":
    """Three embedded brokers with the ids 1, 2 and 3, otherwise as `share_broker`."""
    _check_clock(request)
    from sharecons.testing import EmbeddedBroker

    with EmbeddedBroker(brokers=3, settings=SETTINGS) as brokers:
        yield brokers


@pytest.fixture(params=["asyncio", "trio"])
def virtual_clock(request: pytest.FixtureRequest) -> "Backend":
    """An event loop with a virtual clock, for anyio's pytest plugin:

        @pytest.fixture
        def anyio_backend(virtual_clock):
            return virtual_clock

    Brokers can run on it as well, without sockets: `EmbeddedBroker(listen=False)`.
    """
    from sharecons.testing import virtual_time

    for broker in ("share_broker", "share_cluster"):
        if broker in request.fixturenames:
            _fail_on_virtual_clock(broker)
    if request.param == "trio":
        pytest.importorskip("trio")
    return virtual_time.backend(request.param)


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call() -> "Generator[None, pluggy.Result[object], None]":
    """Add to pytest's error for an async test that no plugin runs."""
    outcome = yield
    error = outcome.excinfo and outcome.excinfo[1]
    if isinstance(error, pytest.fail.Exception | pytest.skip.Exception):
        message = str(error.msg)
        if message.startswith("async def functions are not natively supported"):
            error.msg = f"{message}\nanyio is installed: {MARK}"


def _check_clock(request: pytest.FixtureRequest) -> None:
    """Fail if the test runs on a virtual clock."""
    broker = request.fixturename or ""
    if "virtual_clock" in request.fixturenames:
        _fail_on_virtual_clock(broker)
    if "anyio_backend" in request.fixturenames:
        from sharecons.testing import virtual_time

        if virtual_time.is_virtual(request.getfixturevalue("anyio_backend")):
            _fail_on_virtual_clock(broker)


def _fail_on_virtual_clock(broker: str) -> None:
    from sharecons.testing import virtual_time

    brokers = "brokers=3, " if broker == "share_cluster" else ""
    pytest.fail(
        f"{broker} cannot be used on a virtual clock. {virtual_time.IN_REAL_TIME} "
        f"Use `async with EmbeddedBroker({brokers}listen=False) as broker:` and "
        "`ShareConsumer(..., network=broker.network)` instead, or run the test on a "
        "real clock",
        pytrace=False,
    )
