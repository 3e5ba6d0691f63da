"""The timeouts of exchanges on transports without a timer of their own."""

import anyio
import pytest

from sharecons.net.io.exchange_timeout import GRACE, exchange_within

pytestmark = pytest.mark.anyio


async def no_request():
    """Send nothing."""


async def stop_for(seconds):
    """Wait as a task whose timer runs late, if its process is stopped."""
    with anyio.CancelScope(shield=True):
        await anyio.sleep(seconds)
    await anyio.lowlevel.checkpoint()


async def test_response_that_has_arrived_during_a_stop_is_received():
    waits = [50.0, GRACE / 2]

    async def receive():
        await stop_for(waits.pop(0))
        return b"response"

    assert await exchange_within(2.0, no_request, receive) == b"response"


async def test_response_that_has_not_arrived_after_a_stop_times_out():
    began = anyio.current_time()
    waits = [50.0, 100.0]

    async def receive():
        if len(waits) == 2:
            await stop_for(waits.pop(0))
        await anyio.sleep(waits.pop())

    with pytest.raises(TimeoutError):
        await exchange_within(2.0, no_request, receive)

    assert anyio.current_time() - began == pytest.approx(50.0 + GRACE)


async def test_request_that_was_not_sent_in_time_times_out():
    async def send():
        await stop_for(50.0)

    with pytest.raises(TimeoutError):
        await exchange_within(2.0, send, no_request)


async def test_exchange_without_a_stop_times_out_at_its_timeout():
    began = anyio.current_time()
    with pytest.raises(TimeoutError):
        await exchange_within(2.0, no_request, anyio.sleep_forever)

    assert anyio.current_time() - began == pytest.approx(2.0)
