"""Overdue responses: of brokers that do not respond, and of others."""

import logging
from contextlib import suppress
from functools import partial

import anyio
import pytest

from sharecons.errors import RequestTimedOutError
from sharecons.log import get_logger
from sharecons.net.cluster import Cluster
from sharecons.net.io.event_loop import running_clock
from sharecons.net.outages import Outages
from sharecons.protocol.partitions import Endpoint
from tests.net.streams import REQUEST, RESPONSE, MemoryNetwork, frame

pytestmark = pytest.mark.anyio


@pytest.fixture
def lines(caplog):
    """Return the lines about a broker, as level and reason."""
    caplog.set_level(logging.INFO)
    return lambda: [
        (each.levelname, each.fields.get("reason", "")) for each in caplog.records
    ]


NO_RESPONSE = ("WARNING", "FindCoordinator: no response for 4 s")


async def respond_in_parts(parts, interval, peer):
    """Respond once, in parts of equal length after each interval."""
    await peer.send_versions()
    await peer.request()
    content = frame(2, RESPONSE)
    size = -(-len(content) // parts)
    for start in range(0, len(content), size):
        await anyio.sleep(interval)
        await peer.stream.send(content[start : start + size])


async def stop_in_the_middle(peer):
    await peer.send_versions()
    await peer.request()
    await peer.stream.send(frame(2, RESPONSE)[:10])
    await peer.closed_by_client()


async def send_to(serve, *, check_again=None):
    """Send a request and check each time that is due.

    Args:
        check_again: waits until a time; None for a process that always runs.
    """
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, serve)
        cluster = Cluster(
            [Endpoint("a", 9092)], network, client_id="me", software_version="1"
        )
        cluster.outages = outages = Outages(get_logger("outages"), running_clock())

        async def check():
            while True:
                await (check_again or anyio.sleep_until)(outages.check())

        connection = await cluster.connect(Endpoint("a", 9092))
        tasks.start_soon(check)
        with suppress(RequestTimedOutError):
            await connection.send(REQUEST, 30.0)
        await connection.aclose()
        tasks.cancel_scope.cancel()


async def test_response_that_arrives_slowly_is_not_overdue(lines):
    await send_to(partial(respond_in_parts, 10, 2.0))

    assert lines() == []


async def test_response_that_stops_arriving_is_overdue(lines):
    await send_to(stop_in_the_middle)

    assert lines() == [NO_RESPONSE]


async def test_response_without_bytes_is_overdue_and_its_arrival_ends_the_outage(lines):
    await send_to(partial(respond_in_parts, 1, 6.0))

    assert lines() == [NO_RESPONSE, ("INFO", "")]


async def test_response_is_not_overdue_if_the_process_was_stopped_meanwhile(lines):
    """After a stop, timers can run before the bytes that wait in the socket."""

    async def stop(until):
        await anyio.sleep_until(until + 20.0)

    await send_to(partial(respond_in_parts, 1, 24.1), check_again=stop)

    assert lines() == []
