"""Running a worker on the embedded broker."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from sharecons import Record, RetryPolicy, ShareWorker
from sharecons.testing import EmbeddedBroker

__all__ = ["QUICK", "Handled", "on_real_clock", "settled", "working"]

QUICK = RetryPolicy(max_attempts=3, initial=0.05, maximum=0.2)

on_real_clock = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
"""For tests with threads, in modules whose other tests have a virtual clock."""


class Handled:
    """A handler that records its calls, and runs `act` for each record."""

    def __init__(
        self, act: Callable[[Record[Any, Any]], Awaitable[object]] | None = None
    ) -> None:
        self.calls: list[bytes] = []
        self.running = 0
        self.max_running = 0
        self._act = act

    async def __call__(self, record: Record[Any, Any]) -> None:
        self.calls.append(record.value)
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        try:
            if self._act is not None:
                await self._act(record)
        finally:
            self.running -= 1


@asynccontextmanager
async def working(
    broker: EmbeddedBroker,
    handler: Any,
    *,
    within: float = 30.0,
    **options: Any,
) -> AsyncIterator[ShareWorker[Any, Any]]:
    """Run a worker until the block ends; then it stops, within these seconds in all."""
    worker = ShareWorker(
        "orders",
        handler,
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        network=broker.network,
        **{
            "auto_offset_reset": "earliest",
            "max_wait": 0.1,
            "retry": QUICK,
            **options,
        },
    )
    with anyio.fail_after(within):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            try:
                yield worker
            finally:
                worker.stop()


def settled(broker: EmbeddedBroker, count: int) -> bool:
    """Return whether the first records of "orders", and no others, are settled."""
    try:
        group = broker.group("billing")
    except LookupError:
        return False
    return [count] == [
        partition.start_offset
        for partition in group.partitions
        if partition.topic == "orders"
    ]
