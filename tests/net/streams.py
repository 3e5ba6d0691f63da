"""Byte streams in memory, and scripted peers at their other end."""

from datetime import timedelta

import anyio
from anyio.abc import ByteStream
from kio.schema.errors import ErrorCode

from sharecons.net.io.transport import StreamTransport
from tests.wire.oracle import encode_entity, schema

__all__ = ["MemoryNetwork", "MemoryStream", "Peer", "frame", "pair", "versions_answer"]


class _Way:
    """Bytes on their way from one end to the other."""

    def __init__(self):
        self.data = bytearray()
        self.ended = False
        self._news = anyio.Event()

    def changed(self):
        self._news.set()
        self._news = anyio.Event()

    async def wait(self):
        await self._news.wait()


class MemoryStream(ByteStream):
    """One end of a connection; what it says is there at once, however much it is."""

    def __init__(self, outbound, inbound):
        self._outbound = outbound
        self._inbound = inbound
        self.closed = False

    async def send(self, item):
        await anyio.lowlevel.checkpoint()
        if self.closed:
            raise anyio.ClosedResourceError
        if self._outbound.ended:
            raise anyio.BrokenResourceError
        self._outbound.data += item
        self._outbound.changed()

    async def receive(self, max_bytes=65536):
        await anyio.lowlevel.checkpoint()
        while not self._inbound.data:
            if self.closed:
                raise anyio.ClosedResourceError
            if self._inbound.ended:
                raise anyio.EndOfStream
            await self._inbound.wait()
        data = bytes(self._inbound.data[:max_bytes])
        del self._inbound.data[:max_bytes]
        return data

    async def send_eof(self):
        self._outbound.ended = True
        self._outbound.changed()

    async def aclose(self):
        self.closed = True
        for way in (self._outbound, self._inbound):
            way.ended = True
            way.changed()
        await anyio.lowlevel.checkpoint()


def pair():
    there, back = _Way(), _Way()
    return MemoryStream(there, back), MemoryStream(back, there)


class MemoryNetwork:
    """Connects to peers: each connection's other end goes to `serve`, in a task.

    `serve` may be one function, or a mapping of them by host; who is not in it refuses.
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
        ours, theirs = pair()
        self.streams.append(ours)
        self._tasks.start_soon(_serve, serve, Peer(theirs))
        return StreamTransport(ours)

    @property
    def open(self):
        """How many of the connections were not closed by the client."""
        return sum(not stream.closed for stream in self.streams)


async def _serve(serve, peer):
    try:
        await serve(peer)
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        pass  # the client has gone
    finally:
        await peer.stream.aclose()


class Peer:
    """The broker's end of a connection."""

    def __init__(self, stream):
        self.stream = stream
        self._received = b""

    async def request(self):
        """The next request: header, and the body's bytes."""
        while len(self._received) < 4:
            self._received += await self.stream.receive()
        length = 4 + int.from_bytes(self._received[:4], "big")
        while len(self._received) < length:
            self._received += await self.stream.receive()
        data, self._received = self._received[4:length], self._received[length:]
        return data

    async def answer_versions(self, **changes):
        request = await self.request()
        assert 18 == int.from_bytes(request[:2], "big")
        await self.stream.send(versions_answer(**changes))

    async def gone(self):
        """Wait until the client has closed the connection."""
        while True:
            await self.stream.receive()


def frame(correlation_id, body, *, header=b"\x00"):
    """An answer; for ApiVersions the header is empty."""
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


def versions_answer(correlation_id=1, served=SERVED):
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
