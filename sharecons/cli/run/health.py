"""The health port: `/livez`, `/readyz` and `/metrics` of a process, or of several.

The server has a thread of its own, so that it also responds while a handler blocks the
event loop. Then `/livez` fails, and a supervisor such as Kubernetes restarts the
process. Needs the package prometheus-client.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from anyio.from_thread import start_blocking_portal
from prometheus_client import CollectorRegistry, make_wsgi_app

from sharecons.errors import ConfigurationError
from sharecons.exporter.http_server import serve_wsgi
from sharecons.metrics.families import MetricFamily
from sharecons.prometheus.collectors import FamilyCollector

__all__ = [
    "HealthPages",
    "Problem",
    "health_port",
    "health_port_in_thread",
    "serve_health",
]

Problem = Callable[[], str | None]
"""Returns why a process is not live, or not ready; None if it is."""

Families = Callable[[], Iterable[MetricFamily]]
"""Returns the metrics with their present values."""


@asynccontextmanager
async def health_port(
    host: str,
    port: int,
    *,
    live: Problem,
    ready: Problem,
    families: Families,
    log: Callable[[str], object],
) -> AsyncIterator[None]:
    """Serve until the block is left; log the URL.

    Raises:
        ConfigurationError: the address is not available.
    """
    shown = f"[{host}]" if ":" in host else host
    server = serve_health(host, port, live=live, ready=ready, families=families)
    async with AsyncExitStack() as stack:
        # Only listening is in this block: a handler can raise OSError as well.
        try:
            listening = await stack.enter_async_context(server)
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigurationError(
                f"--health-port: cannot listen on {shown}:{port}: {reason}"
            ) from error
        log(f"http://{shown}:{listening}")
        yield


class HealthPages:
    """Responses of the health port: at first, that the process starts."""

    def __init__(self) -> None:
        self.live: Problem = lambda: None
        self.ready: Problem = lambda: "starting: the handler is being imported"
        self.families: Families = lambda: []
        self.url = ""

    def set_url(self, url: str) -> None:
        self.url = url


@contextmanager
def health_port_in_thread(host: str, port: int) -> Iterator[HealthPages]:
    """Serve until the block is left, even while no event loop runs.

    Raises as `health_port`.
    """
    pages = HealthPages()
    with start_blocking_portal() as portal:
        server = health_port(
            host,
            port,
            live=lambda: pages.live(),
            ready=lambda: pages.ready(),
            families=lambda: pages.families(),
            log=pages.set_url,
        )
        served = portal.wrap_async_context_manager(server)
        served.__enter__()
        try:
            yield pages
        finally:
            served.__exit__(None, None, None)  # SystemExit would end its event loop


@asynccontextmanager
async def serve_health(
    host: str,
    port: int,
    *,
    live: Problem,
    ready: Problem,
    families: Families,
) -> AsyncIterator[int]:
    """Serve until the block is left; yields the port.

    `live`, `ready` and `families` are called in threads.

    Raises:
        OSError: the address is not available.
    """
    registry = CollectorRegistry()
    registry.register(FamilyCollector(families))
    metrics = make_wsgi_app(registry)
    pages = {"/livez": live, "/readyz": ready}

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            return metrics(environ, start_response)
        if path in pages:
            return _respond(start_response, pages[path]())
        text = "there are /livez, /readyz and /metrics"
        return _respond(start_response, text, "404 Not Found")

    async with serve_wsgi(app, host, port) as listening:
        yield listening


def _respond(
    start_response: Callable[..., Any],
    problem: str | None,
    failed: str = "503 Service Unavailable",
) -> list[bytes]:
    headers = [("Content-Type", "text/plain; charset=utf-8")]
    start_response("200 OK" if problem is None else failed, headers)
    return [f"{problem or 'ok'}\n".encode()]
