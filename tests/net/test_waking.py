"""For how many of the bytes of an answer a wire has itself woken."""

import socket
import sys

import anyio
import pytest

from sharecons.net.io.framing import MAX_LOW_WATER_MARK
from sharecons.net.io.tcp import ProtocolTransport
from tests.net.ends import ASYNCIO, UVLOOP, framed, gone, heard, say

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


async def say_in_pieces(end, data, *cuts):
    for start, stop in zip((0, *cuts), (*cuts, len(data)), strict=True):
        await say(end, data[start:stop])
        await anyio.sleep(0.01)


async def asked(wire, end, data, *cuts):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(say_in_pieces, end, data, *cuts)
        return bytes(await wire.exchange(b"question", 10, bytes))


async def test_woken_for_the_beginning_of_a_small_answer_and_for_its_end(ends):
    wire, theirs = ends
    content = b"fields before, records, fields behind"

    assert content == await asked(wire, theirs, framed(content), 10, 20, 30)
    assert [10, 31] == wire.with_


async def test_each_answer_has_its_own_rest(ends):
    wire, theirs = ends
    for size in (300, 20, 4000, 4):
        content = b"a" * size
        wire.with_.clear()

        assert content == await asked(wire, theirs, framed(content), 5, 7)
        assert [5, size - 1] == wire.with_


async def test_woken_at_once_for_what_no_answer_began(ends):
    """The next answer may have fewer bytes than the last one lacked."""
    wire, theirs = ends
    await asked(wire, theirs, framed(b"a" * 4000), 10)
    wire.with_.clear()

    assert b"last" == await asked(wire, theirs, framed(b"last"), 1, 2, 3)
    assert [1, 1, 1, 5] == wire.with_


async def test_woken_for_every_piece_of_much_that_is_to_come(ends):
    """It is received while it comes."""
    wire, theirs = ends
    content = b"a" * (MAX_LOW_WATER_MARK + 10_000)

    assert content == await asked(wire, theirs, framed(content), 100, 200, 10_100)
    assert [100, 100, 9900, MAX_LOW_WATER_MARK - 96] == wire.with_


async def test_a_rest_that_is_there_already(ends):
    """Sent between the receiving of the beginning and the waiting for the rest."""
    wire, theirs = ends
    data = framed(b"fields and records")
    rest = [data[9:]]

    def send_the_rest():
        if rest:
            theirs.send(rest.pop())

    wire.first = send_the_rest

    assert data[4:] == await asked(wire, theirs, data[:9])
    assert [9, len(data) - 9] == wire.with_


@pytest.mark.parametrize("how", ["closes", "resets"])
async def test_a_broker_that_leaves_within_an_answer(ends, how):
    wire, theirs = ends

    async def leave():
        await say(theirs, framed(b"fields and records")[:9])
        await anyio.sleep(0.01)
        if how == "resets":
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        theirs.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leave)
        with anyio.fail_after(5), pytest.raises((anyio.EndOfStream, OSError)):
            await wire.receive()


async def test_a_rest_that_never_comes(ends):
    wire, theirs = ends
    await say(theirs, framed(b"fields and records")[:9])
    with pytest.raises(TimeoutError):
        await wire.exchange(b"question", 0.05, bytes)

    await heard(theirs, 8)
    with anyio.fail_after(5):
        assert await gone(theirs)


async def test_where_the_system_refuses_it_is_woken_for_every_piece(kind):
    class Sandboxed(socket.socket):
        def setsockopt(self, level, name, *value):
            if name == socket.SO_RCVLOWAT:
                raise PermissionError("not here")
            super().setsockopt(level, name, *value)

    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    sandboxed = Sandboxed(fileno=ours.detach())
    sandboxed.setblocking(False)
    theirs.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wire = await kind[0](sandboxed)
    with theirs:
        assert b"fields" == await asked(wire, theirs, framed(b"fields"), 5, 6)
        await wire.aclose()
        await anyio.lowlevel.checkpoint()

    assert [5, 1, 4] == wire.with_
