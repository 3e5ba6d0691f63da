"""TCP for the brokers: ports open and close immediately, without an await.

anyio's listeners open and close later. Here a stopped broker rejects the next
connection immediately, and a started broker accepts it.
"""

import errno
import os
import random
import socket
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import anyio
from anyio.abc import ByteStream

from sharecons.testing.broker.addresses import format_address, wildcard_version

__all__ = ["Listener", "SocketStream"]

_fork_lock: Final = threading.Lock()
"""Held while a socket is opened, and during a fork."""
_open_sockets: Final[weakref.WeakSet[socket.socket]] = weakref.WeakSet()


def _close_in_child() -> None:
    """Close the parent's sockets in a forked process.

    Otherwise they stay open after the parent has closed them, and clients wait for a
    broker that is gone.
    """
    _fork_lock.release()
    for each in list(_open_sockets):
        each.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_fork_lock.acquire,
        after_in_parent=_fork_lock.release,
        after_in_child=_close_in_child,
    )

# Below the range for outgoing connections: from that range, a client that connects to a
# stopped broker could itself be given the broker's port.
FREE_PORTS: Final = range(20_000, 32_000)
MAX_TRIES: Final = 200
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
            await self._wait_ready(anyio.wait_readable)
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
                await self._wait_ready(anyio.wait_writable)
            except OSError as error:
                raise anyio.BrokenResourceError from error

    async def send_eof(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            _close(self._socket)

    async def _wait_ready(
        self, wait: Callable[[socket.socket], Awaitable[None]]
    ) -> None:
        if self._closed:
            raise anyio.ClosedResourceError
        await wait(self._socket)


class Listener:
    """An open port; `::` accepts clients over IPv4 as well.

    Raises:
        OSError: the port is in use.
    """

    def __init__(self, host: str, port: int) -> None:
        self._socket = _bind(host, port)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]

    async def accept(self) -> tuple[SocketStream, str, str]:
        """Wait for a client; return its connection, its host, and the local host.

        Raises:
            ClosedResourceError: the port is closed.
        """
        while True:
            self._check_open()
            await anyio.wait_readable(self._socket)
            self._check_open()
            try:
                with _fork_lock:
                    connected, address = self._socket.accept()
                    _open_sockets.add(connected)
            except (BlockingIOError, ConnectionAbortedError):
                continue  # the client has disconnected
            local = connected.getsockname()[0]
            return SocketStream(connected), _plain(address[0]), _plain(local)

    def close(self) -> None:
        """Reject clients from now on."""
        if self._socket.fileno() >= 0:
            _close(self._socket)

    def _check_open(self) -> None:
        if self._socket.fileno() < 0:
            raise anyio.ClosedResourceError


def _close(opened: socket.socket) -> None:
    anyio.notify_closing(opened)
    opened.close()


def _bind(host: str, port: int) -> socket.socket:
    family = _family(host)
    accepts_both = wildcard_version(host) == 6 and socket.has_dualstack_ipv6()
    for candidate in _candidates(port):
        try:
            with _fork_lock:
                bound = socket.create_server(
                    (host, candidate),
                    family=family,
                    backlog=BACKLOG,
                    dualstack_ipv6=accepts_both,
                )
                _open_sockets.add(bound)
                return bound
        except OSError as error:
            if port or error.errno != errno.EADDRINUSE:
                # Python adds the attempted call to the message; the address is enough.
                reason = str(error.strerror).partition(" (while")[0]
                where = format_address(host, port)
                raise OSError(error.errno, f"{where}: {reason}") from error
    raise OSError(f"no free port from {FREE_PORTS.start} to {FREE_PORTS.stop}")


def _plain(address: str) -> str:
    """Return an IPv4 client's address, which an IPv6 socket reports as ::ffff:…."""
    host = address.removeprefix("::ffff:")
    return host if "." in host else address


def _family(host: str) -> socket.AddressFamily:
    """Return IPv4, unless the host has only IPv6 addresses."""
    if not host:
        return socket.AF_INET
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return socket.AF_INET  # binding reports an invalid name
    families = {family for family, *_ in found}
    return socket.AF_INET if socket.AF_INET in families else socket.AF_INET6


def _candidates(port: int) -> Iterator[int]:
    if port:
        yield port
    else:
        yield from random.sample(FREE_PORTS, MAX_TRIES)
