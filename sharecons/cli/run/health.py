"""The health port: `/livez`, `/readyz` and `/metrics` of one process.

The server has a thread of its own, so that it also responds while a handler blocks the
event loop. Then `/livez` fails, and a supervisor such as Kubernetes restarts the
process. Needs the package prometheus-client.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sharecons.exporter.http_server import serve_wsgi

__all__ = ["Problem", "serve_health"]

Problem = Callable[[], str | None]
"""Returns why a process is not live, or not ready; None if it is."""

Numbers = Callable[[], Mapping[str, float]]
"""Returns the numbers of a worker by name."""

GAUGES: Final = ("held", "running", "waiting", "abandoned_threads")
"""Numbers that go up and down; all others are counts."""


@asynccontextmanager
async def serve_health(
    host: str,
    port: int,
    *,
    live: Problem,
    ready: Problem,
    numbers: Numbers,
    labels: Mapping[str, str],
) -> AsyncIterator[int]:
    """Serve until the block is left; yields the port.

    `live`, `ready` and `numbers` are called in threads; `labels` are the labels of all
    metrics.

    Raises:
        OSError: the address is not available.
    """
    registry = CollectorRegistry()
    registry.register(_WorkerCollector(numbers, live, ready, labels))
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


class _WorkerCollector(Collector):
    """The numbers as Prometheus metrics, at the time of each scrape."""

    def __init__(
        self,
        numbers: Numbers,
        live: Problem,
        ready: Problem,
        labels: Mapping[str, str],
    ) -> None:
        self._numbers = numbers
        self._checks = {"live": live, "ready": ready}
        self._labels = labels

    def collect(self) -> Iterable[Metric]:
        for name, problem in self._checks.items():
            yield self._metric(GaugeMetricFamily, name, float(problem() is None))
        for name, number in self._numbers().items():
            kind = GaugeMetricFamily if name in GAUGES else CounterMetricFamily
            yield self._metric(kind, name, number)

    def _metric(
        self,
        kind: type[GaugeMetricFamily] | type[CounterMetricFamily],
        name: str,
        value: float,
    ) -> Metric:
        noun = "records" if kind is CounterMetricFamily else "now"
        metric = kind(
            f"sharecons_worker_{name}",
            f"{name.replace('_', ' ')}, {noun}; see WorkerStats",
            labels=list(self._labels),
        )
        metric.add_metric(list(self._labels.values()), value)
        return metric
