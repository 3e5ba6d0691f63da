"""TCP as the brokers need it: ports open and close at once, without an await.

anyio's own listeners open and close in their own time. Here a broker that was told to
stop refuses the next connection, and one that was told to start takes it.
"""

import random
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import anyio
from anyio.abc import ByteStream

__all__ = ["Listener", "SocketStream"]

# Below what systems hand out to outgoing connections: from there a client that tries
# to reach a stopped broker could be given the broker's own port.
FREE: Final = range(20_000, 32_000)
TRIES: Final = 200
BACKLOG: Final = 512


class SocketStream(ByteStream):
    """A connected socket."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connected
        self._closed = False

    async def receive(self, max_bytes: int = 65536) -> bytes:
        while True:
            await self._ready(anyio.wait_readable)
            try:
                data = self._socket.recv(max_bytes)
            except BlockingIOError:
                continue
            except OSError as error:
                raise anyio.BrokenResourceError from error
            if not data:
                raise anyio.EndOfStream
            return data

    async def send(self, item: bytes) -> None:
        rest = memoryview(item)
        while rest:
            if self._closed:
                raise anyio.ClosedResourceError
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                await self._ready(anyio.wait_writable)
            except OSError as error:
                raise anyio.BrokenResourceError from error

    async def send_eof(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            _close(self._socket)

    async def _ready(self, wait: Callable[[socket.socket], Awaitable[None]]) -> None:
        if self._closed:
            raise anyio.ClosedResourceError
        await wait(self._socket)


class Listener:
    """An open port.

    Raises:
        OSError: somebody else has it.
    """

    def __init__(self, host: str, port: int) -> None:
        self._socket = _bound(host, port)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]

    async def accept(self) -> tuple[SocketStream, str]:
        """Wait for a client; gives the connection, and the client's host.

        Raises:
            ClosedResourceError: the port is closed.
        """
        while True:
            self._check_open()
            await anyio.wait_readable(self._socket)
            self._check_open()
            try:
                connected, address = self._socket.accept()
            except (BlockingIOError, ConnectionAbortedError):
                continue  # it has gone again
            return SocketStream(connected), address[0]

    def close(self) -> None:
        """Refuse clients from now on."""
        if self._socket.fileno() >= 0:
            _close(self._socket)

    def _check_open(self) -> None:
        if self._socket.fileno() < 0:
            raise anyio.ClosedResourceError


def _close(opened: socket.socket) -> None:
    anyio.notify_closing(opened)
    opened.close()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in _candidates(port):
        try:
            return socket.create_server(
                (host, candidate), family=family, backlog=BACKLOG
            )
        except OSError as error:
            if port:
                # Python adds what it was about to do; the address says enough.
                reason = str(error.strerror).partition(" (while")[0]
                raise OSError(error.errno, f"{host}:{port}: {reason}") from error
    raise OSError(f"no free port from {FREE.start} to {FREE.stop}")


def _candidates(port: int) -> Iterator[int]:
    if port:
        yield port
    else:
        yield from random.sample(FREE, TRIES)
