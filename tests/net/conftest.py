import socket

import anyio
import pytest

from sharecons.testing import virtual_time


@pytest.fixture(params=virtual_time.BACKENDS)
def anyio_backend(request):
    return virtual_time.backend(request.param)


@pytest.fixture
async def pair(kind):
    """Return a transport, and the non-blocking socket at its other end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
    client.setblocking(False)
    peer.setblocking(False)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as brokers do
    transport = await kind[0](client)
    with peer:
        yield transport, peer
        await transport.aclose()
        # asyncio closes its sockets in the next round.
        await anyio.lowlevel.checkpoint()
