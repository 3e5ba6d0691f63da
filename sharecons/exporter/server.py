"""The exporter's server: metrics over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import make_wsgi_app

from sharecons.exporter.http_server import serve_wsgi
from sharecons.exporter.metrics import Metrics, make_registry

__all__ = ["serve_metrics"]


@asynccontextmanager
async def serve_metrics(metrics: Metrics, host: str, port: int) -> AsyncIterator[int]:
    """Serve metrics over HTTP in a thread until the block is left.

    Yields the port; with 0 that is a free one.

    Raises:
        OSError, UnicodeError: the address is not available.
    """
    async with serve_wsgi(make_wsgi_app(make_registry(metrics)), host, port) as port:
        yield port
