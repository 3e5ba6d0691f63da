"""Each kind of transport with its event loops, and helpers for its peer."""

import anyio

from sharecons.net.io.tcp import ProtocolTransport, SocketTransport
from sharecons.net.io.transport import StreamTransport


async def protocol_transport(client):
    return await ProtocolTransport.from_socket(client)


async def socket_transport(client):
    return SocketTransport(client)


async def stream_transport(client):
    return StreamTransport(await anyio.abc.SocketStream.from_socket(client))


ASYNCIO = ("asyncio", {})
UVLOOP = ("asyncio", {"use_uvloop": True})
TRIO = ("trio", {})

TRANSPORTS = {
    "protocol": (protocol_transport, ASYNCIO),
    "protocol, uvloop": (protocol_transport, UVLOOP),
    "socket": (socket_transport, ASYNCIO),
    "socket, trio": (socket_transport, TRIO),
    "stream": (stream_transport, ASYNCIO),
    "stream, trio": (stream_transport, TRIO),
}


def framed(content):
    return len(content).to_bytes(4, "big") + content


async def send_all(sock, data):
    """Send all data, however slowly it is received."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[sock.send(rest) :]
        except BlockingIOError:
            await anyio.wait_writable(sock)


async def receive_bytes(sock, size):
    data = b""
    while len(data) < size:
        await anyio.wait_readable(sock)
        data += sock.recv(1 << 20)
    return data


async def is_closed(sock):
    """Wait until the other end has closed."""
    await anyio.wait_readable(sock)
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True
