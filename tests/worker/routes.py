"""Running a worker with several routes on the embedded broker."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from sharecons import ShareConsumer, ShareWorker
from sharecons.consumer.deserializers import Deserializers
from sharecons.testing import EmbeddedBroker
from sharecons.worker.dead_letters import DeadLetterQueue
from sharecons.worker.handlers import handler_call
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.options import WorkerOptions
from sharecons.worker.routes import Route, Routes

__all__ = ["route", "working_routes"]


def route(handler: Callable[[Any], Any], **options: Any) -> Route:
    dead_letter = options.get("dead_letter")
    call = handler_call(handler)
    settings = HandlerSettings(
        max_records=call.max_records, max_wait=call.max_wait, **options
    )
    queue = None if dead_letter is None else DeadLetterQueue(dead_letter)
    no_deserializers = Deserializers(None, None)
    return Route(
        settings=settings, call=call, deserializers=no_deserializers, dead_letter=queue
    )


@asynccontextmanager
async def working_routes(
    broker: EmbeddedBroker,
    by_topic: dict[str, Route],
    *,
    concurrency: int = 10,
    max_bytes: int = 64 << 20,
    create_topics: bool = False,
    within: float = 600.0,
    **consumer: Any,
) -> AsyncIterator[ShareWorker[Any, Any]]:
    """Run a worker until the block ends; then its handlers are cancelled."""
    routes = Routes(by_topic)
    not_entered: ShareConsumer[Any, Any] = ShareConsumer(
        *by_topic,
        *routes.retry_topics,
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        network=broker.network,
        **{"auto_offset_reset": "earliest", "max_wait": 0.1, **consumer},
    )
    worker = ShareWorker(not_entered, print, create_topics=create_topics)
    worker._options = WorkerOptions(
        concurrency=concurrency, max_bytes=max_bytes, shutdown_grace=1.0, routes=routes
    )
    with anyio.fail_after(within):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            try:
                yield worker
            finally:
                worker.stop_now()
