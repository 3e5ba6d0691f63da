"""Connections over memory, for a virtual clock: it would jump past bytes that are
under way in a socket.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio
from anyio.abc import ByteStream

__all__ = ["Address", "MemoryStream", "MemoryTransport", "Network", "memory_pipe"]


class Address(Protocol):
    """The address that a client connects to."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


class _Pipe:
    """The bytes of one direction of a connection."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.is_closed = False
        self._changed = anyio.Event()

    def notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def close(self) -> None:
        self.is_closed = True
        self.notify()

    async def wait(self) -> None:
        await self._changed.wait()


class MemoryStream(ByteStream):
    """One end of a connection; any number of sent bytes arrives immediately."""

    def __init__(self, outbound: _Pipe, inbound: _Pipe) -> None:
        self._outbound = outbound
        self._inbound = inbound
        self.closed = False

    async def send(self, item: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        if self.closed:
            raise anyio.ClosedResourceError
        if self._outbound.is_closed:
            raise anyio.BrokenResourceError
        self._outbound.data += item
        self._outbound.notify()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        while not self._inbound.data:
            if self.closed:
                raise anyio.ClosedResourceError
            if self._inbound.is_closed:
                raise anyio.EndOfStream
            await self._inbound.wait()
        data = bytes(self._inbound.data[:max_bytes])
        del self._inbound.data[:max_bytes]
        return data

    async def send_eof(self) -> None:
        self._outbound.close()

    async def aclose(self) -> None:
        self.closed = True
        self._outbound.close()
        self._inbound.close()
        await anyio.lowlevel.checkpoint()


class MemoryTransport:
    """A connection for `ShareConsumer(network=…)`, in frames."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._received = bytearray()

    async def _receive(self) -> memoryview:
        """Receive the next response, without its length."""
        await self._fill(4)
        length = int.from_bytes(self._received[:4], "big")
        await self._fill(4 + length)
        frame = bytes(self._received[4 : 4 + length])
        del self._received[: 4 + length]
        return memoryview(frame)

    async def exchange(self, data: bytes, timeout: float) -> memoryview:
        """Send a request and return the response."""
        with anyio.fail_after(timeout):
            await self._stream.send(data)
            return await self._receive()

    async def idle(
        self, wait: Callable[[], Awaitable[None]], lost: Callable[[Exception], None]
    ) -> None:
        """Await `wait()`; call `lost` if the connection ends meanwhile."""

        async def watch() -> None:
            try:
                self._received += await self._stream.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError) as error:
                lost(error)
            else:
                lost(ConnectionError("the broker sent bytes that were not requested"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await wait()
            tasks.cancel_scope.cancel()

    async def aclose(self) -> None:
        await anyio.aclose_forcefully(self._stream)

    async def _fill(self, size: int) -> None:
        while len(self._received) < size:
            self._received += await self._stream.receive()


class Network:
    """Connects a `ShareConsumer` to embedded brokers over memory.

    Args:
        connect: connects to a broker by its port.
    """

    def __init__(self, connect: Callable[[int], MemoryStream]) -> None:
        self._connect = connect

    async def connect(self, endpoint: Address) -> MemoryTransport:
        await anyio.lowlevel.checkpoint()
        return MemoryTransport(self._connect(endpoint.port))


def memory_pipe() -> tuple[MemoryStream, MemoryStream]:
    """Return both ends of a connection."""
    there, back = _Pipe(), _Pipe()
    return MemoryStream(there, back), MemoryStream(back, there)
