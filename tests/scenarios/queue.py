"""A topic with a share group of its own, and what is often asked of them."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio

from sharecons import Record, ShareConsumer
from tests.kafka_plugin import Admin

__all__ = ["Queue", "left_over", "offsets", "take"]


class Queue:
    """A topic, and consumers of one group on it."""

    def __init__(self, admin: Admin, partitions: int = 1, **config: str) -> None:
        self.admin = admin
        self.topic = admin.create_topic(partitions=partitions)
        self.group = f"group-{self.topic}"
        admin.set_group_config(
            self.group, {"share.auto.offset.reset": "earliest", **config}
        )

    def produce(self, values: Sequence[bytes | None], **options: Any) -> None:
        self.admin.produce(self.topic, values, **options)

    def consumer(self, **options: Any) -> ShareConsumer[Any, Any]:
        return ShareConsumer(
            self.topic,
            group_id=self.group,
            bootstrap_servers=self.admin.bootstrap_servers,
            **options,
        )


async def take(
    records: AsyncIterator[Record[Any, Any]], count: int, *, within: float = 20
) -> list[Record[Any, Any]]:
    """The next records; fewer if they do not come in time."""
    taken: list[Record[Any, Any]] = []
    with anyio.move_on_after(within):
        while len(taken) < count:
            taken.append(await anext(records))
    return taken


async def left_over(queue: Queue, *, within: float = 2.5) -> list[Record[Any, Any]]:
    """What the group would deliver to somebody new."""
    async with queue.consumer(acknowledgement="explicit") as consumer:
        return await take(aiter(consumer), 1_000_000, within=within)


def offsets(records: Sequence[Record[Any, Any]]) -> list[int]:
    return [record.offset for record in records]
