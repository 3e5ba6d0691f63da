"""HTTP servers in threads, which respond also while an event loop is blocked."""

import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import anyio
from anyio import to_thread

__all__ = ["serve_wsgi"]


class _SilentHandler(WSGIRequestHandler):
    """Writes no line for each request."""

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingMixIn, WSGIServer):
    """A server with a daemon thread for each request."""

    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        self.address_family, address = _resolve(host, port)
        super().__init__(address, _SilentHandler)

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            with suppress(OSError):  # :: is then for IPv6 only
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # HTTPServer looks up the full name of the host, which can take seconds.
        TCPServer.server_bind(self)
        self.server_name = str(self.server_address[0])
        self.server_port = int(self.server_address[1])
        self.setup_environ()


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    """Return the family and the address to listen on: of IPv4, if a name has both."""
    if not host:  # an environment variable that is not set; "" would be all addresses
        raise OSError("the host is empty")
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    family, *_, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, address


@asynccontextmanager
async def serve_wsgi(
    app: Callable[..., object], host: str, port: int
) -> AsyncIterator[int]:
    """Serve a WSGI application until the block is left.

    Yields the port; with 0 that is a free one.

    Raises:
        OSError, UnicodeError: the address is not available.
    """
    server = _Server(host, port)
    server.set_app(app)  # type: ignore[arg-type]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        with anyio.CancelScope(shield=True):
            # Waits for current responses; the server checks twice a second.
            await to_thread.run_sync(server.shutdown)
        server.server_close()
        thread.join(timeout=1.0)
