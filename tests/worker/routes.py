"""Running a worker with several handlers on either broker."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio

from sharecons import Handler, RetryPolicy, ShareWorker
from tests.worker.working import AnyBroker, new_worker

__all__ = ["route", "working_routes"]


QUICK = RetryPolicy(initial=0.1, maximum=0.4)


def route(handler: Callable[[Any], Any], **options: Any) -> Handler[Any, Any]:
    return Handler(handler, **{"retry": QUICK, **options})


@asynccontextmanager
async def working_routes(
    broker: AnyBroker,
    by_topic: Mapping[str, Handler[Any, Any]],
    *,
    max_bytes: int = 64 << 20,
    within: float = 600.0,
    **options: Any,
) -> AsyncIterator[ShareWorker[Any, Any]]:
    """Run a worker until the block ends; then its handlers are cancelled."""
    options = {"shutdown_grace": 1.0, **options}
    worker = new_worker(broker, by_topic, max_held_bytes=max_bytes, **options)
    with anyio.fail_after(within):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            try:
                yield worker
            finally:
                worker.stop_now()
