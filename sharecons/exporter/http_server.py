"""HTTP servers in threads, which respond also while an event loop is blocked."""

import socket
import socketserver
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import anyio
from anyio import to_thread

__all__ = ["serve_wsgi", "shutting_down"]


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    """A server with a daemon thread for each request."""

    daemon_threads = True


class _ServerOfIPv6(_Server):
    address_family = socket.AF_INET6


class _SilentHandler(WSGIRequestHandler):
    """Writes no line for each request."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@asynccontextmanager
async def serve_wsgi(
    app: Callable[..., object], host: str, port: int
) -> AsyncIterator[int]:
    """Serve a WSGI application until the block is left.

    Yields the port; with 0 that is a free one.

    Raises:
        OSError: the address is not available.
    """
    kind = _ServerOfIPv6 if ":" in host else _Server
    server = make_server(host, port, app, kind, _SilentHandler)  # type: ignore[arg-type]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    async with shutting_down(server, thread):
        yield server.server_port


@asynccontextmanager
async def shutting_down(
    server: socketserver.BaseServer, thread: threading.Thread
) -> AsyncIterator[None]:
    """Shut down a server and its thread when the block is left."""
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            # Waits for current responses; the server checks twice a second.
            await to_thread.run_sync(server.shutdown)
        server.server_close()
        thread.join(timeout=1.0)
