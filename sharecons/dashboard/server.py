"""The dashboard's own server: uvicorn, in the event loop of the caller."""

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import anyio
import uvicorn
from starlette.applications import Starlette

__all__ = ["listen", "serving"]

STOP_SECONDS: Final = 5.0
"""Seconds for responses that have begun."""


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the caller."""
        yield


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; with port 0 it has any free one.

    Raises:
        OSError, UnicodeError: the address is not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


@asynccontextmanager
async def serving(app: Starlette, listening: socket.socket) -> AsyncIterator[None]:
    """Serve the application of `create_app` until the block is left; asyncio only."""
    server = _Server(uvicorn.Config(app, log_level="warning", lifespan="on"))
    ended = anyio.Event()

    async def serve() -> None:
        # A cancelled uvicorn closes nothing: `should_exit` ends it instead.
        with anyio.CancelScope(shield=True):
            await server.serve(sockets=[listening])
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        try:
            yield
        finally:
            app.state.dashboard.live.close()  # streams of events end
            server.should_exit = True
            with anyio.move_on_after(STOP_SECONDS, shield=True):
                await ended.wait()
            server.force_exit = True
