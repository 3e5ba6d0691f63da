"""How many received bytes wake a transport (SO_RCVLOWAT)."""

import socket
import sys

import anyio
import pytest

from sharecons.net.io.framing import MAX_LOW_WATER_MARK
from sharecons.net.io.tcp import ProtocolTransport
from tests.net.transports import (
    ASYNCIO,
    UVLOOP,
    framed,
    is_closed,
    receive_bytes,
    send_all,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="it is Linux's way"),
]

AT_ONCE = b"\1\0\0\0\0\0\0\0"
"""Closing with this lingering sends RST where FIN would be polite."""


class Woken(ProtocolTransport):
    """Notes how many bytes it is woken with, and first does what a test wants."""

    def __init__(self):
        super().__init__()
        self.with_ = []
        self.first = lambda: None

    def buffer_updated(self, nbytes):
        self.with_.append(nbytes)
        self.first()
        super().buffer_updated(nbytes)


@pytest.fixture(params=[ASYNCIO, UVLOOP], ids=["asyncio", "uvloop"])
def kind(request):
    return Woken.from_socket, request.param


@pytest.fixture
def anyio_backend(kind):
    return kind[1]


async def say_in_pieces(sock, data, *cuts):
    for start, stop in zip((0, *cuts), (*cuts, len(data)), strict=True):
        await send_all(sock, data[start:stop])
        await anyio.sleep(0.01)


async def asked(transport, sock, data, *cuts):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(say_in_pieces, sock, data, *cuts)
        return bytes(await transport.exchange(b"question", 10, bytes))


async def test_small_response_wakes_for_its_start_and_its_end(pair):
    transport, peer = pair
    content = b"fields before, records, fields behind"

    assert content == await asked(transport, peer, framed(content), 10, 20, 30)
    assert [10, 31] == transport.with_


async def test_low_water_mark_is_set_for_each_response(pair):
    transport, peer = pair
    for size in (300, 20, 4000, 4):
        content = b"a" * size
        transport.with_.clear()

        assert content == await asked(transport, peer, framed(content), 5, 7)
        assert [5, size - 1] == transport.with_


async def test_next_response_wakes_for_its_first_byte(pair):
    """The next answer may have fewer bytes than the last one lacked."""
    transport, peer = pair
    await asked(transport, peer, framed(b"a" * 4000), 10)
    transport.with_.clear()

    assert b"last" == await asked(transport, peer, framed(b"last"), 1, 2, 3)
    assert [1, 1, 1, 5] == transport.with_


async def test_large_response_wakes_for_every_chunk(pair):
    """It is received while it comes."""
    transport, peer = pair
    content = b"a" * (MAX_LOW_WATER_MARK + 10_000)

    assert content == await asked(transport, peer, framed(content), 100, 200, 10_100)
    assert [100, 100, 9900, MAX_LOW_WATER_MARK - 96] == transport.with_


async def test_rest_that_arrived_before_the_mark_was_set_wakes(pair):
    """Sent between the receiving of the beginning and the waiting for the rest."""
    transport, peer = pair
    data = framed(b"fields and records")
    rest = [data[9:]]

    def send_the_rest():
        if rest:
            peer.send(rest.pop())

    transport.first = send_the_rest

    assert data[4:] == await asked(transport, peer, data[:9])
    assert [9, len(data) - 9] == transport.with_


@pytest.mark.parametrize("how", ["closes", "resets"])
async def test_connection_that_ends_within_a_response_raises(pair, how):
    transport, peer = pair

    async def leave():
        await send_all(peer, framed(b"fields and records")[:9])
        await anyio.sleep(0.01)
        if how == "resets":
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        peer.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leave)
        with anyio.fail_after(5), pytest.raises((anyio.EndOfStream, OSError)):
            await transport.receive()


async def test_rest_that_never_arrives_times_out(pair):
    transport, peer = pair
    await send_all(peer, framed(b"fields and records")[:9])
    with pytest.raises(TimeoutError):
        await transport.exchange(b"question", 0.05, bytes)

    await receive_bytes(peer, 8)
    with anyio.fail_after(5):
        assert await is_closed(peer)


async def test_without_low_water_mark_every_chunk_wakes(kind):
    class Sandboxed(socket.socket):
        def setsockopt(self, level, name, *value):
            if name == socket.SO_RCVLOWAT:
                raise PermissionError("not here")
            super().setsockopt(level, name, *value)

    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
    sandboxed = Sandboxed(fileno=client.detach())
    sandboxed.setblocking(False)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    transport = await kind[0](sandboxed)
    with peer:
        assert b"fields" == await asked(transport, peer, framed(b"fields"), 5, 6)
        await transport.aclose()
        await anyio.lowlevel.checkpoint()

    assert [5, 1, 4] == transport.with_
