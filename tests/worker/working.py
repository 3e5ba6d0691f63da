"""Running a worker on the embedded broker."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

import anyio

from sharecons import Record, RetryPolicy, ShareConsumer, ShareWorker
from sharecons.testing import EmbeddedBroker

__all__ = ["QUICK", "Handled", "settled", "until", "working"]

QUICK = RetryPolicy(max_attempts=3, initial=0.05, maximum=0.2)


class Handled:
    """A handler that notes its calls, and runs `act` for each record."""

    def __init__(
        self, act: Callable[[Record[Any, Any]], Awaitable[object]] | None = None
    ) -> None:
        self.calls: list[bytes] = []
        self.running = 0
        self.most_running = 0
        self._act = act

    async def __call__(self, record: Record[Any, Any]) -> None:
        self.calls.append(record.value)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
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
    consumer: Mapping[str, Any] = MappingProxyType({}),
    **options: Any,
) -> AsyncIterator[ShareWorker[Any, Any]]:
    """Run a worker until the block ends; then it stops."""
    un_entered: ShareConsumer[Any, Any] = ShareConsumer(
        "orders",
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        max_wait=0.1,
        **consumer,
    )
    worker = ShareWorker(un_entered, handler, **{"retry": QUICK, **options})
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            try:
                yield worker
            finally:
                worker.stop()


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(15):
        while not condition():
            await anyio.sleep(0.01)


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
