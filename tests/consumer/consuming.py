"""The consumer that most tests of this package use, and what they read of it."""

import asyncio
from typing import Any

import anyio

from sharecons import Record, ShareConsumer
from sharecons.testing import EmbeddedBroker, OffsetState

__all__ = ["acquired", "connecting", "consuming", "new_tasks", "next_record"]


def consuming(broker: EmbeddedBroker, **options: Any) -> ShareConsumer[Any, Any]:
    """Return a consumer of the topic orders from its beginning, over memory."""
    return ShareConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        **{
            "group_id": "billing",
            "network": broker.network,
            "auto_offset_reset": "earliest",
            **options,
        },
    )


def connecting(broker: EmbeddedBroker, **options: Any) -> ShareConsumer[Any, Any]:
    """Return the same consumer, over sockets."""
    return consuming(broker, **{"network": None, **options})


async def next_record(consumer: ShareConsumer[Any, Any]) -> Record[Any, Any]:
    """Return the next record of a new loop, within 20 seconds."""
    with anyio.fail_after(20):
        return await anext(aiter(consumer))


def new_tasks(before: set["asyncio.Task[Any]"]) -> set["asyncio.Task[Any]"]:
    return {task for task in asyncio.all_tasks() if not task.done()} - before


def acquired(broker: EmbeddedBroker) -> int:
    """Return how many records of orders are acquired."""
    return sum(
        each.state is OffsetState.ACQUIRED
        for partition in broker.group("billing").partitions
        for each in partition.in_flight
        if partition.topic == "orders"
    )
