"""Running a worker on the embedded broker, or in memory."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from sharecons import Record, RetryPolicy, ShareWorker
from sharecons.copies.dead_letter_headers import Origin, read_origin
from sharecons.member.record_source import RecordSource
from sharecons.member.source_options import SourceOptions
from sharecons.testing import EmbeddedBroker, virtual_time
from tests.waiting import until
from tests.worker.memory import MemoryBroker, MemoryProducer
from tests.worker.memory_source import MemorySource

__all__ = [
    "QUICK",
    "AnyBroker",
    "Handled",
    "new_worker",
    "on_asyncio",
    "on_real_clock",
    "origins",
    "process",
    "settled",
    "working",
]

AnyBroker = EmbeddedBroker | MemoryBroker

QUICK = RetryPolicy(max_attempts=3, initial=0.05, maximum=0.2)

on_real_clock = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
"""For tests with threads, in modules whose other tests have a virtual clock."""

on_asyncio = pytest.mark.parametrize(
    "virtual_clock", [virtual_time.backend("asyncio")], ids=["asyncio"]
)
"""For tests of what trio does not have, as `Task.cancel`."""


class MemoryWorker(ShareWorker[Any, Any]):
    """A worker whose records, and copies, are in memory.

    Attributes:
        source: its source, for faults.
    """

    def __init__(self, broker: MemoryBroker, *arguments: Any, **options: Any) -> None:
        self._memory = broker
        super().__init__(*arguments, **options)

    def _new_source(self, options: SourceOptions) -> RecordSource:
        self.source = MemorySource(self._memory, options)
        return self.source

    def _new_producer(self) -> Any:
        return MemoryProducer(self._memory)


class Handled:
    """A handler that records its calls, and runs `act` for each record."""

    def __init__(
        self, act: Callable[[Record[Any, Any]], Awaitable[object]] | None = None
    ) -> None:
        self.calls: list[Any] = []
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


def new_worker(
    broker: AnyBroker, *arguments: Any, **options: Any
) -> ShareWorker[Any, Any]:
    """Return a worker of the group "billing"."""
    options = {
        "group_id": "billing",
        "auto_offset_reset": "earliest",
        "max_wait": 0.1,
        "retry": QUICK,
        **options,
    }
    if isinstance(broker, MemoryBroker):
        return MemoryWorker(broker, *arguments, **options)
    servers = broker.bootstrap_servers
    network = options.pop("network", broker.network)
    return ShareWorker(
        *arguments, bootstrap_servers=servers, network=network, **options
    )


@asynccontextmanager
async def working(
    broker: AnyBroker,
    handler: Any,
    *,
    within: float = 30.0,
    **options: Any,
) -> AsyncIterator[ShareWorker[Any, Any]]:
    """Run a worker until the block ends; then it stops, within these seconds in all."""
    worker = new_worker(broker, "orders", handler, **options)
    with anyio.fail_after(within):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            try:
                yield worker
            finally:
                worker.stop()


async def process(
    broker: AnyBroker,
    handler: Any,
    count: int,
    *,
    within: float = 15.0,
    **options: Any,
) -> ShareWorker[Any, Any]:
    """Run a worker until the first records of "orders" are settled; return it."""
    async with working(broker, handler, **options) as worker:
        await until(lambda: settled(broker, count), within=within)
    return worker


def origins(broker: AnyBroker) -> list[Origin]:
    """Return the origins of the dead letters, by their offsets at the source."""
    found = [read_origin(letter.headers) for letter in broker.records("orders.dead")]
    return sorted((each for each in found if each), key=lambda each: each.offset)


def settled(broker: AnyBroker, count: int) -> bool:
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
