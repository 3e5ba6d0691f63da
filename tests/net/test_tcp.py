"""Connections over real sockets of this machine, in real time."""

import socket
from functools import partial

import anyio
import pytest

from sharecons.errors import ConnectionFailedError
from sharecons.net.cluster import Cluster
from sharecons.net.connection import Connection
from sharecons.net.io.transport import TcpNetwork
from sharecons.protocol.partitions import Endpoint
from tests.net.streams import REQUEST, RESPONSE, Peer, frame
from tests.wire.oracle import from_hex

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


class Server:
    """Listens on a port of its own; each connection goes to `serve`."""

    def __init__(self, serve):
        self._serve = serve

    async def __aenter__(self):
        listeners = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self._listener = listeners
        port = listeners.extra(anyio.abc.SocketAttribute.local_port)
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(listeners.serve, self._handle)
        return Endpoint("127.0.0.1", port)

    async def __aexit__(self, *exception):
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)
        await self._listener.aclose()

    async def _handle(self, stream):
        try:
            async with stream:
                await self._serve(Peer(stream))
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            pass  # the client has closed the connection


async def respond_once(response, peer):
    await peer.send_versions()
    await peer.request()
    await peer.stream.send(response)
    await peer.closed_by_client()


async def connected(endpoint, timeout=5.0):
    return await Connection.open(
        TcpNetwork(), endpoint, client_id="me", software_version="1", timeout=timeout
    )


async def test_response_of_many_segments():
    """Three megabytes do not come in one receive."""
    resource = b"\0" * 3 + b"\0" + from_hex("02 0000 00 20 08 'billing' 02 02 'n'")
    length = 3 << 20
    varint = bytes((length + 1 & 0x7F | 0x80, length + 1 >> 7 & 0x7F | 0x80))
    varint += bytes((length + 1 >> 14 & 0x7F | 0x80, length + 1 >> 21))
    body = resource + varint + b"x" * length + from_hex("00 00 00 01 00 00 00 00 00")
    from sharecons.protocol.group.config_messages import DescribeGroupConfig

    async with Server(partial(respond_once, frame(2, body))) as here:
        connection = await connected(here)

        response = await connection.send(
            DescribeGroupConfig(group_id="billing", name="n"), 5.0
        )

        assert "x" * length == response.value
        await connection.aclose()


async def test_broker_that_resets_instead_of_responding():
    async def serve(peer):
        await peer.send_versions()
        await peer.request()
        raw = peer.stream.extra(anyio.abc.SocketAttribute.raw_socket)
        # Closing with this sends RST where FIN would be polite.
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    async with Server(serve) as here:
        connection = await connected(here)

        with pytest.raises(ConnectionFailedError, match=f"FindCoordinator to {here}"):
            await connection.send(REQUEST, 5.0)
        assert connection.closed


async def test_refused_connection_names_the_address():
    async with Server(None) as here:
        pass

    with pytest.raises(ConnectionFailedError, match=f"connecting to {here}: .*refused"):
        await connected(here)


async def test_name_that_does_not_resolve():
    nowhere = Endpoint("nowhere.invalid", 9092)

    with pytest.raises(ConnectionFailedError, match="connecting to nowhere.invalid"):
        await connected(nowhere)


async def test_first_of_several_brokers_that_responds_is_used():
    async with Server(None) as unused:
        pass
    async with Server(partial(respond_once, frame(2, RESPONSE))) as here:
        cluster = Cluster(
            [unused, here], TcpNetwork(), client_id="me", software_version="1"
        )

        connection = await cluster.connect_any()

        assert str(here) == connection.broker
        await connection.aclose()
