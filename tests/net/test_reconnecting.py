"""Connections that open at the first request, and again after a failure."""

from functools import partial

import anyio
import pytest

from sharecons.errors import ConnectionFailedError, ProtocolError, RequestTimedOutError
from sharecons.net.cluster import Cluster
from sharecons.net.connection import (
    Connection,
    ReconnectingConnection,
    SharedConnection,
)
from sharecons.protocol.partitions import Endpoint
from tests.net.interrupts import interruptions
from tests.net.streams import (
    REQUEST,
    RESPONSE,
    MemoryNetwork,
    Peer,
    closing,
    frame,
    http,
    responding,
)

pytestmark = pytest.mark.anyio


class Connections:
    """Opens connections; each of the functions serves one of them, in order."""

    def __init__(self, tasks, *serves):
        self._serves = list(serves)
        self.network = MemoryNetwork(tasks, self._next)
        self._cluster = Cluster(
            [Endpoint("a", 9092)], self.network, client_id="me", software_version="1"
        )

    async def _next(self, peer: Peer):
        await self._serves.pop(0)(peer)

    async def connect(self):
        return await self._cluster.connect_any()


async def respond_times(count, peer):
    await peer.send_versions()
    for number in range(2, 2 + count):
        await peer.request()
        await peer.stream.send(frame(number, RESPONSE))


async def test_connection_opens_at_the_first_request_only():
    async with anyio.create_task_group() as tasks:
        connections = Connections(tasks, responding)
        connection = ReconnectingConnection(connections.connect)
        assert [] == connections.network.connects

        for _ in range(3):
            assert 1 == (await connection.send(REQUEST, 1.0)).node_id

        assert 1 == len(connections.network.connects)
        await connection.aclose()
        assert 0 == connections.network.open


async def silent_after_versions(peer):
    await peer.send_versions()
    await peer.closed_by_client()


@pytest.mark.parametrize(
    ("serve", "error"),
    [
        pytest.param(partial(respond_times, 0), ConnectionFailedError, id="loss"),
        pytest.param(silent_after_versions, RequestTimedOutError, id="no response"),
        pytest.param(http, ConnectionFailedError, id="failed attempt"),
    ],
)
async def test_connection_opens_again_after(serve, error):
    async with anyio.create_task_group() as tasks:
        connections = Connections(tasks, serve, responding)
        connection = ReconnectingConnection(connections.connect)

        with pytest.raises(error):
            await connection.send(REQUEST, 1.0)
        assert 1 == (await connection.send(REQUEST, 1.0)).node_id

        assert 2 == len(connections.network.connects)
        assert 1 == connections.network.open
        await connection.aclose()


async def test_connection_opens_again_after_a_cancelled_request():
    async with anyio.create_task_group() as tasks:
        connections = Connections(tasks, *[responding] * 100)
        connection = ReconnectingConnection(connections.connect)

        async def attempt(interrupted):
            await interrupted(connection.send(REQUEST, 1.0))
            assert 1 == (await connection.send(REQUEST, 1.0)).node_id
            assert 1 == connections.network.open

        assert [step async for step in interruptions(attempt)]
        await connection.aclose()


async def test_concurrent_requests_take_turns():
    in_flight, max_in_flight, received = 0, 0, 0

    async def serve(peer):
        nonlocal in_flight, max_in_flight, received
        await peer.send_versions()
        for number in range(2, 7):
            await peer.request()
            in_flight, received = in_flight + 1, received + 1
            max_in_flight = max(max_in_flight, in_flight)
            await anyio.sleep(0.1)
            assert not peer.unread, "a second request came too early"
            in_flight -= 1
            await peer.stream.send(frame(number, RESPONSE))

    async with anyio.create_task_group() as tasks:
        connections = Connections(tasks, serve)
        connection = SharedConnection(connections.connect)
        async with anyio.create_task_group() as senders:
            for _ in range(5):
                senders.start_soon(connection.send, REQUEST, 1.0)

        assert (1, 5, 1) == (max_in_flight, received, len(connections.network.connects))
        await connection.aclose()


async def test_connection_that_is_passed_is_used():
    async with anyio.create_task_group() as tasks:
        connections = Connections(tasks, responding)
        opened = await connections.connect()
        connection = ReconnectingConnection(connections.connect)
        connection.use(opened)

        await connection.send(REQUEST, 1.0)

        assert 1 == len(connections.network.connects)
        await connection.aclose()
        assert opened.closed


async def test_connection_that_is_closed_while_it_opens_stays_closed():
    async with anyio.create_task_group() as tasks:
        connections = Connections(tasks, responding)

        async def connect_slowly():
            opened = await connections.connect()
            await connection.aclose()
            return opened

        connection = SharedConnection(connect_slowly)
        with pytest.raises(ConnectionFailedError, match="was not sent"):
            await connection.send(REQUEST, 1.0)

        assert 0 == connections.network.open


@pytest.mark.parametrize(
    ("serve", "hint"),
    [
        pytest.param(closing, "TLS port", id="closed-at-versions"),
        pytest.param(partial(respond_times, 0), "SASL", id="closed-after-versions"),
    ],
)
async def test_hints_about_security_end_once_a_broker_has_served_a_request(serve, hint):
    async with anyio.create_task_group() as tasks:
        serves = [serve, partial(respond_times, 1), serve]
        network = Connections(tasks, *serves).network
        reached = set()

        async def connect():
            return await Connection.open(
                network,
                Endpoint("a", 9092),
                client_id="me",
                software_version="1",
                timeout=1.0,
                is_plain=True,
                reached=reached,
            )

        connection = ReconnectingConnection(connect)
        with pytest.raises(ConnectionFailedError, match=hint):
            await connection.send(REQUEST, 1.0)
        await connection.send(REQUEST, 1.0)
        with pytest.raises(ConnectionFailedError):  # the end of that connection
            await connection.send(REQUEST, 1.0)
        with pytest.raises(ConnectionFailedError) as lost:
            await connection.send(REQUEST, 1.0)

        assert "security" not in str(lost.value)
        await connection.aclose()


async def test_unused_connection_closes():
    async with anyio.create_task_group() as tasks:
        await ReconnectingConnection(Connections(tasks).connect).aclose()


async def test_error_of_the_protocol_is_one_of_the_connection():
    """Catching ConnectionFailedError also catches invalid responses."""
    assert issubclass(ProtocolError, ConnectionFailedError)
    assert issubclass(RequestTimedOutError, ConnectionFailedError)
