"""taskiq's own receiver at work, for tests."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from taskiq.receiver import Receiver

from sharecons.taskiq import ShareGroupBroker

__all__ = ["receiving", "until"]


@asynccontextmanager
async def receiving(
    broker: ShareGroupBroker, **options: Any
) -> AsyncIterator[Receiver]:
    """Run a receiver in a worker until the block ends; then it stops as on SIGTERM."""
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


async def until(condition: Callable[[], bool], seconds: float = 15) -> None:
    with anyio.fail_after(seconds):
        while not condition():
            await anyio.sleep(0.01)
