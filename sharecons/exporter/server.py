"""The running exporter: collects at intervals, and serves the metrics over HTTP."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
from prometheus_client import make_wsgi_app

from sharecons.exporter.collector import Collector
from sharecons.exporter.http_server import serve_wsgi
from sharecons.exporter.metrics import Metrics, make_registry
from sharecons.exporter.reachability import Reachability
from sharecons.exporter.snapshot import Snapshot, unreachable

__all__ = ["collect_repeatedly", "serve_metrics"]

Report = Callable[[str], None]

MAX_LINES: Final = 5
"""Lines of errors per collection, as many partitions can fail for one reason."""

RECOVERED: Final = "everything can be read again"


@asynccontextmanager
async def serve_metrics(metrics: Metrics, host: str, port: int) -> AsyncIterator[int]:
    """Serve metrics over HTTP in a thread until the block is left.

    Yields the port; with 0 that is a free one.

    Raises:
        OSError, UnicodeError: the address is not available.
    """
    async with serve_wsgi(make_wsgi_app(make_registry(metrics)), host, port) as port:
        yield port


async def collect_repeatedly(
    collector: Collector,
    reachability: Reachability,
    metrics: Metrics,
    interval: float,
    report: Report,
) -> None:
    """Collect every `interval` seconds until cancelled, even after errors.

    When no broker responds, drop all values of groups immediately. When one responds
    again, collect immediately. Call `say` with what cannot be read, when that changes.
    """
    messages: tuple[str, ...] = ()
    while True:
        began = time.monotonic()
        snapshot = await _collect(collector, reachability, metrics)
        metrics.update(snapshot)
        messages = _report_errors(messages, snapshot, report)
        if snapshot.reached:
            rest = max(0.0, began + interval - time.monotonic())
            with anyio.move_on_after(rest):
                snapshot = unreachable(await reachability.wait_until_lost())
                metrics.update(snapshot)
                messages = _report_errors(messages, snapshot, report)
        if not snapshot.reached:
            await reachability.wait_until_back()


async def _collect(
    collector: Collector, reachability: Reachability, metrics: Metrics
) -> Snapshot:
    """Collect once, or until no broker responds."""

    async def report_response() -> None:
        # A collection can take ten seconds, in which an alert would fire.
        if await reachability.responds():
            metrics.broker_responded()

    ended: list[Snapshot] = []

    async def watch() -> None:
        ended.append(unreachable(await reachability.wait_until_lost()))
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        if not metrics.reached:
            tasks.start_soon(report_response)
        ended.append(await collector.collect())
        tasks.cancel_scope.cancel()
    return ended[0]


def _report_errors(
    before: tuple[str, ...], snapshot: Snapshot, report: Report
) -> tuple[str, ...]:
    new = [each for each in snapshot.error_messages if each not in before]
    for complaint in new[:MAX_LINES]:
        report(complaint)
    if len(new) > MAX_LINES:
        report(f"and {len(new) - MAX_LINES} more")
    if before and not snapshot.error_messages:
        report(RECOVERED)
    return snapshot.error_messages
