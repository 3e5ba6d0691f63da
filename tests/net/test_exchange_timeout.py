"""One timer for the timeouts of all exchanges of a connection."""

import asyncio
import math

import pytest

from sharecons.net.io.exchange_timeout import GRACE, ExchangeTimeout
from sharecons.testing import virtual_time

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return virtual_time.backend("asyncio")


class Bench:
    """A timeout, and the seconds after which it called its function."""

    def __init__(self):
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.calls = []
        self.timeout = ExchangeTimeout(
            loop, lambda: self.calls.append(pytest.approx(loop.time() - began))
        )


@pytest.mark.parametrize(
    ("timeouts", "calls"),
    [
        pytest.param([2.0], [2.0], id="one"),
        pytest.param([30.0, 2.0], [2.0], id="a shorter one"),
        pytest.param([2.0, math.inf], [], id="then none"),
        pytest.param([math.inf, 2.0], [2.0], id="after none"),
    ],
)
async def test_exchange_times_out_at_the_last_timeout(timeouts, calls):
    bench = Bench()
    for timeout in timeouts:
        bench.timeout.start(timeout)
    await asyncio.sleep(100.0)

    assert calls == bench.calls


async def test_timeout_of_the_last_exchange_counts():
    bench = Bench()
    for _ in range(3):
        bench.timeout.start(2.0)
        await asyncio.sleep(1.0)
    await asyncio.sleep(10.0)

    assert [4.0] == bench.calls


async def test_cancelled_timeout_starts_again():
    bench = Bench()
    bench.timeout.start(2.0)
    bench.timeout.cancel()
    await asyncio.sleep(10.0)
    assert [] == bench.calls

    bench.timeout.start(2.0)
    await asyncio.sleep(10.0)
    assert [12.0] == bench.calls


async def test_many_exchanges_set_one_timer(monkeypatch):
    loop = asyncio.get_running_loop()
    timers = []
    bench = Bench()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "call_at", lambda when, call: timers.append(when))
        for _ in range(100):
            bench.timeout.start(2.0)

    assert 1 == len(timers)


async def test_timer_that_is_far_too_late_leaves_time_to_read_the_response(monkeypatch):
    """After a stop of the process, the timer runs before the socket is read."""
    loop = asyncio.get_running_loop()
    call_at = loop.call_at
    bench = Bench()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "call_at", lambda when, call: call_at(when + 50, call))
        bench.timeout.start(2.0)
    await asyncio.sleep(100.0)

    assert [2.0 + 50.0 + GRACE] == bench.calls
