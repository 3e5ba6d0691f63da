"""A topic with a share group of its own, and what is often asked of them."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio

from sharecons import Record, ShareConsumer
from tests.kafka_plugin import Admin

__all__ = ["Queue", "left_over", "offsets", "take"]


class Queue:
    """A topic, and consumers of one group on it."""

    def __init__(
        self, admin: Admin, partitions: int = 1, replication: int = 1, **config: str
    ) -> None:
        self.admin = admin
        self.topic = admin.create_topic(partitions=partitions, replication=replication)
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


async def left_over(queue: Queue, *, calm: float = 1.0) -> list[Record[Any, Any]]:
    """What the group would deliver to somebody new.

    Ends when nothing has come for so many seconds to a member that has partitions, and
    has had an answer.
    """
    found: list[Record[Any, Any]] = []
    async with queue.consumer(acknowledgement="explicit") as consumer:
        records = aiter(consumer)
        with anyio.fail_after(60):
            while True:
                looks = consumer.assignment and consumer.metrics()["fetch-total"] > 1
                more = await take(records, 1_000, within=calm)
                if looks and not more:
                    return found
                found += more


def offsets(records: Sequence[Record[Any, Any]]) -> list[int]:
    return [record.offset for record in records]
