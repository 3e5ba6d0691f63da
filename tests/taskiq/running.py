"""A taskiq broker on the embedded broker, its tasks, and taskiq's own receiver.

The tests run on a virtual clock (`sharecons.testing.virtual_time`).
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from taskiq.receiver import Receiver

from sharecons.taskiq import ShareGroupBroker
from sharecons.testing import EmbeddedBroker, OffsetState

__all__ = [
    "LOCK_MS",
    "Tasks",
    "acquired",
    "between_ticks",
    "in_flight",
    "make_broker",
    "receiving",
]

LOCK_MS = 1000
"""The lock duration of the group "workers" in milliseconds."""


def make_broker(kafka: EmbeddedBroker, **options: Any) -> ShareGroupBroker:
    return ShareGroupBroker(
        "tasks",
        group_id="workers",
        bootstrap_servers=kafka.bootstrap_servers,
        **{"network": kafka.network, **options},
    )


def in_flight(kafka: EmbeddedBroker) -> list[tuple[OffsetState, int]]:
    """Return state and delivery count of the offsets that are not settled."""
    partition = kafka.group("workers").partition("tasks")
    return [(each.state, each.delivery_count) for each in partition.in_flight]


def acquired(kafka: EmbeddedBroker) -> int:
    states = Counter(state for state, _ in in_flight(kafka))
    return states[OffsetState.ACQUIRED]


async def next_tick() -> None:
    """Wait for a time at which all running "tick" tasks end, ten times a second."""
    await asyncio.sleep(0.1 - asyncio.get_running_loop().time() % 0.1)


async def between_ticks() -> None:
    """Wait for a time at which no "tick" task ends."""
    await next_tick()
    await asyncio.sleep(0.05)


class Tasks:
    """The tasks of a broker, and their calls."""

    def __init__(self, broker: ShareGroupBroker) -> None:
        self.calls: list[int] = []
        self.ended: list[int] = []
        self.go = asyncio.Event()

        @broker.task(task_name="note")
        async def note(number: int) -> int:
            self.calls.append(number)
            return number

        @broker.task(task_name="work")
        async def work(number: int, seconds: float = 0.0) -> None:
            self.calls.append(number)
            await asyncio.sleep(seconds)
            self.ended.append(number)

        @broker.task(task_name="block")
        async def block(number: int) -> None:
            self.calls.append(number)
            await self.go.wait()
            self.ended.append(number)

        @broker.task(task_name="tick")
        async def tick(number: int) -> None:
            await next_tick()
            self.ended.append(number)

        @broker.task(task_name="fail")
        async def fail(number: int) -> None:
            self.calls.append(number)
            raise ValueError(f"task {number}")

        self.note, self.work, self.block = note, work, block
        self.tick, self.fail = tick, fail


@asynccontextmanager
async def receiving(
    broker: ShareGroupBroker, **options: Any
) -> AsyncIterator[Receiver]:
    """Run a receiver in a worker until the block ends; then stop it as SIGTERM does."""
    broker.is_worker_process = True
    options.setdefault("max_async_tasks", 10)
    await broker.startup()
    receiver = Receiver(broker, run_startup=False, **options)
    finish = asyncio.Event()
    listening = asyncio.create_task(receiver.listen(finish))
    try:
        yield receiver
        finish.set()
        async with asyncio.timeout(20):
            await listening
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await broker.shutdown()
