"""Connections over memory, with a test's own function at the broker's end."""

from datetime import timedelta

import anyio
from kio.schema.errors import ErrorCode

from sharecons.net.io.transport import StreamTransport
from sharecons.protocol.group.messages import FindCoordinator
from sharecons.testing.broker.memory import memory_pipe
from tests.wire.oracle import encode_entity, from_hex, schema

__all__ = [
    "REQUEST",
    "RESPONSE",
    "MemoryNetwork",
    "Peer",
    "closing",
    "frame",
    "http",
    "responding",
    "versions_response",
]

REQUEST = FindCoordinator(group_id="billing")
RESPONSE = from_hex("00000000 02 08 'billing' 00000001 03 'b1' 00002384 0000 00 00 00")


class MemoryNetwork:
    """Connects a client to peers over memory.

    `serve(peer)` runs in a task for each connection. It is one function for all hosts,
    or a mapping from hosts to functions; other hosts refuse the connection.
    """

    def __init__(self, tasks, serve):
        self._tasks = tasks
        self._serve = serve
        self.connects = []
        self.streams = []

    async def connect(self, endpoint):
        self.connects.append(endpoint)
        await anyio.lowlevel.checkpoint()
        serve = self._serve
        if isinstance(serve, dict):
            if endpoint.host not in serve:
                raise ConnectionRefusedError(111, "Connection refused")
            serve = serve[endpoint.host]
        client, broker = memory_pipe()
        self.streams.append(client)
        self._tasks.start_soon(_serve, serve, Peer(broker))
        return StreamTransport(client)

    @property
    def open(self):
        """The number of connections that the client has not closed."""
        return sum(not stream.closed for stream in self.streams)


async def _serve(serve, peer):
    try:
        await serve(peer)
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        pass  # the client has closed the connection
    finally:
        await peer.stream.aclose()


class Peer:
    """The broker's end of a connection."""

    def __init__(self, stream):
        self.stream = stream
        self._received = b""

    async def request(self):
        """Return the bytes of the next request: its header and its body."""
        while len(self._received) < 4:
            self._received += await self.stream.receive()
        length = 4 + int.from_bytes(self._received[:4], "big")
        while len(self._received) < length:
            self._received += await self.stream.receive()
        data, self._received = self._received[4:length], self._received[length:]
        return data

    @property
    def unread(self):
        """The bytes that were received after the last request."""
        return self._received

    async def send_versions(self, **changes):
        request = await self.request()
        assert 18 == int.from_bytes(request[:2], "big")
        await self.stream.send(versions_response(**changes))

    async def closed_by_client(self):
        """Wait until the client has closed the connection."""
        while True:
            await self.stream.receive()


def frame(correlation_id, body, *, header=b"\x00"):
    """Return the bytes of a response; for ApiVersions the header is empty."""
    content = correlation_id.to_bytes(4, "big") + header + body
    return len(content).to_bytes(4, "big") + content


SERVED = {
    3: (0, 13),
    10: (0, 6),
    18: (0, 4),
    32: (1, 4),
    44: (0, 1),
    76: (1, 1),
    78: (1, 2),
    79: (1, 2),
}


def versions_response(correlation_id=1, served=SERVED):
    v = schema("api_versions", 3).response
    entity = v.ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=tuple(
            v.ApiVersion(api_key=key, min_version=lowest, max_version=highest)
            for key, (lowest, highest) in served.items()
        ),
        throttle_time=timedelta(0),
    )
    return frame(correlation_id, encode_entity(entity), header=b"")


async def responding(peer):
    """Send versions, and RESPONSE to each request."""
    await peer.send_versions()
    for number in range(2, 1000):
        await peer.request()
        await peer.stream.send(frame(number, RESPONSE))


async def http(peer):
    await peer.request()
    await peer.stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def closing(peer):
    """Close as a TLS port, or as a proxy whose broker is dead."""
    await peer.request()
