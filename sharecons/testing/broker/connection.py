"""One client's connection: requests are handled in order, one at a time.

As in Kafka, a request that waits at the broker (a long poll) blocks later requests of
its connection. Reading continues, so that a closed connection is noticed and its
sessions end immediately.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import anyio
from anyio.abc import ByteStream

from sharecons.testing.broker.hangs import Pause
from sharecons.testing.broker.signals import Signal

__all__ = ["Connection", "FrameHandler"]

FrameHandler: TypeAlias = Callable[[bytes, "Connection"], Awaitable[None]]
"""Handles one request frame of a connection, and sends the response."""

MAX_REQUEST: Final = 256 * 1024 * 1024  # bytes of a request; Kafka's default is 100 MiB
CHUNK_SIZE: Final = 1 << 20
_END_OF_STREAM: Final = (
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
)


class Connection:
    """The frames of one client, and the responses to it."""

    def __init__(
        self,
        stream: ByteStream,
        handle: FrameHandler,
        peer: str,
        host: str | None = None,
        pause: Pause | None = None,
    ) -> None:
        self.peer = peer  # the client's host, as DescribeGroups shows it
        self.host = host  # the broker's address that the client has connected to
        self.software = ("unknown", "unknown")  # the client's name and version
        self.is_closed = False
        self.changed = Signal()  # notified when the client has disconnected
        self.pause = pause or Pause()  # the broker hangs while it is active
        self._stream = stream
        self._handle = handle
        self._frames: deque[bytes] = deque()
        self._received = Signal()
        self._is_cut = False
        self._scope = anyio.CancelScope()

    async def serve(self) -> None:
        """Handle requests until one side closes the connection."""
        with self._scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read)
                await self._handle_all()
                tasks.cancel_scope.cancel()

    def cut(self) -> None:
        """Close the connection now, even if a response is incomplete."""
        self._is_cut = True
        self._mark_closed()
        self._scope.cancel()

    async def send(self, frame: bytes) -> None:
        """Send a response, unless the client has disconnected."""
        await self.pause.wait_until_ended()
        if self._is_cut:
            return
        try:
            await self._stream.send(frame)
        except _END_OF_STREAM:
            self._mark_closed()

    async def _read(self) -> None:
        buffer = bytearray()
        try:
            while True:
                received = await self._stream.receive(CHUNK_SIZE)
                await self.pause.wait_until_ended()
                buffer += received
                self._split(buffer)
        except (*_END_OF_STREAM, ValueError):
            await self.pause.wait_until_ended()
            self._mark_closed()

    def _split(self, buffer: bytearray) -> None:
        while len(buffer) >= 4:
            length = int.from_bytes(buffer[:4], "big", signed=True)
            if not 8 <= length <= MAX_REQUEST:
                raise ValueError(f"invalid request length: {length} bytes")
            if len(buffer) < 4 + length:
                return
            self._frames.append(bytes(buffer[4 : 4 + length]))
            del buffer[: 4 + length]
            self._received.notify()

    async def _handle_all(self) -> None:
        while True:
            # `cut` cancels at the next await, and a handler can have none.
            await self.pause.wait_until_ended()
            while self._frames and not self._is_cut:
                await self._handle(self._frames.popleft(), self)
                await self.pause.wait_until_ended()
            if self.is_closed:
                return
            event = anyio.Event()
            self._received.add(event)
            await event.wait()

    def _mark_closed(self) -> None:
        self.is_closed = True
        self.changed.notify()
        self._received.notify()
