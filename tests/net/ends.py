"""Each kind of wire, on the event loops that it is for, and what its other end does."""

import anyio

from sharecons.net.io.tcp import ProtocolTransport, SocketTransport
from sharecons.net.io.transport import StreamTransport


async def on_protocol(ours):
    return await ProtocolTransport.from_socket(ours)


async def on_socket(ours):
    return SocketTransport(ours)


async def on_stream(ours):
    return StreamTransport(await anyio.abc.SocketStream.from_socket(ours))


ASYNCIO = ("asyncio", {})
UVLOOP = ("asyncio", {"use_uvloop": True})
TRIO = ("trio", {})

WIRES = {
    "protocol": (on_protocol, ASYNCIO),
    "protocol, uvloop": (on_protocol, UVLOOP),
    "socket": (on_socket, ASYNCIO),
    "socket, trio": (on_socket, TRIO),
    "stream": (on_stream, ASYNCIO),
    "stream, trio": (on_stream, TRIO),
}


def framed(content):
    return len(content).to_bytes(4, "big") + content


async def say(end, data):
    """Send all of it, however slowly it is taken."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[end.send(rest) :]
        except BlockingIOError:
            await anyio.wait_writable(end)


async def heard(end, size):
    data = b""
    while len(data) < size:
        await anyio.wait_readable(end)
        data += end.recv(1 << 20)
    return data


async def gone(end):
    """Wait until the other end has closed."""
    await anyio.wait_readable(end)
    try:
        return end.recv(1) == b""
    except ConnectionResetError:
        return True
