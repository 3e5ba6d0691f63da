import socket

import anyio
import pytest

from sharecons.testing import virtual_time


@pytest.fixture(params=virtual_time.BACKENDS)
def anyio_backend(request):
    return virtual_time.backend(request.param)


@pytest.fixture
async def ends(kind):
    """A wire, and the socket at its other end, which does not block."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    ours.setblocking(False)
    theirs.setblocking(False)
    theirs.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as brokers do
    wire = await kind[0](ours)
    with theirs:
        yield wire, theirs
        await wire.aclose()
        # asyncio closes its sockets in the next round.
        await anyio.lowlevel.checkpoint()
