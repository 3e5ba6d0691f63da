"""The exporter at work: it collects at intervals, and serves what it has."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio import to_thread
from prometheus_client import start_http_server

from sharecons.exporter.collector import Collector
from sharecons.exporter.metrics import Metrics, registry_of
from sharecons.exporter.reachability import Reachability
from sharecons.exporter.snapshot import Snapshot, unreachable

__all__ = ["keep_collecting", "serving"]

Say = Callable[[str], None]

MOST: Final = 5
"""Lines for one collection: the reasons are few, the partitions may be many."""

AGAIN: Final = "everything can be read again"


@asynccontextmanager
async def serving(metrics: Metrics, host: str, port: int) -> AsyncIterator[int]:
    """Serve metrics over HTTP, in a thread, until the block is left.

    Gives the port, which is a free one for 0.

    Raises:
        OSError: the address cannot be had.
    """
    server, thread = start_http_server(port, host, registry_of(metrics))
    try:
        yield server.server_port
    finally:
        with anyio.CancelScope(shield=True):
            # It ends what it is answering; its loop looks twice a second.
            await to_thread.run_sync(server.shutdown)
        server.server_close()
        thread.join(timeout=1.0)


async def keep_collecting(
    collecting: Collector,
    reachability: Reachability,
    metrics: Metrics,
    interval: float,
    say: Say,
) -> None:
    """Collect every `interval` seconds until cancelled, whatever fails.

    When no broker answers, drop all values of groups at once. When one answers again,
    collect at once. Call `say` with what cannot be read, when that changes.
    """
    trouble: tuple[str, ...] = ()
    while True:
        began = time.monotonic()
        readings = await _collect(collecting, reachability)
        metrics.read(readings)
        trouble = _tell(trouble, readings, say)
        if readings.reached:
            rest = max(0.0, began + interval - time.monotonic())
            with anyio.move_on_after(rest):
                readings = unreachable(await reachability.wait_until_lost())
                metrics.read(readings)
                trouble = _tell(trouble, readings, say)
        if not readings.reached:
            await reachability.wait_until_back()


async def _collect(collecting: Collector, reachability: Reachability) -> Snapshot:
    """Collect once, or until no broker answers."""
    ended: list[Snapshot] = []

    async def watch() -> None:
        ended.append(unreachable(await reachability.wait_until_lost()))
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        ended.append(await collecting.collect())
        tasks.cancel_scope.cancel()
    return ended[0]


def _tell(before: tuple[str, ...], readings: Snapshot, say: Say) -> tuple[str, ...]:
    new = [each for each in readings.complaints if each not in before]
    for complaint in new[:MOST]:
        say(complaint)
    if len(new) > MOST:
        say(f"and {len(new) - MOST} more")
    if before and not readings.complaints:
        say(AGAIN)
    return readings.complaints
