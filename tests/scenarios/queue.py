"""A topic with its own share group, and helpers to consume it."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio

from sharecons import Record, ShareConsumer, ShareWorker
from tests.scenarios.embedded_admin import AnyAdmin

__all__ = ["Queue", "offsets", "remaining_records", "take", "unsettled"]


class Queue:
    """A topic with one share group."""

    def __init__(
        self, admin: AnyAdmin, partitions: int = 1, replication: int = 1, **config: str
    ) -> None:
        self.admin = admin
        self.partitions = partitions
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
            **{"network": self.admin.network, **options},
        )

    def worker(self, handler: Any, **options: Any) -> ShareWorker[Any, Any]:
        return ShareWorker(
            self.topic,
            handler,
            group_id=self.group,
            bootstrap_servers=self.admin.bootstrap_servers,
            **{"network": self.admin.network, **options},
        )


async def take(
    records: AsyncIterator[Record[Any, Any]], count: int, *, within: float = 20
) -> list[Record[Any, Any]]:
    """Return the next records; fewer if they do not arrive in time (seconds)."""
    records_taken: list[Record[Any, Any]] = []
    with anyio.move_on_after(within):
        while len(records_taken) < count:
            records_taken.append(await anext(records))
    return records_taken


async def remaining_records(
    queue: Queue, *, idle_seconds: float = 1.0
) -> list[Record[Any, Any]]:
    """Return the records that the group delivers to a new member, each once."""
    return await unsettled(
        queue.admin, queue.group, queue.topic, idle_seconds=idle_seconds
    )


async def unsettled(
    admin: AnyAdmin, group: str, *topics: str, idle_seconds: float = 1.0
) -> list[Record[Any, Any]]:
    """Return the records that a group delivers to a new member, each once.

    Stop when a member with partitions of all topics has received a fetch response, but
    no other record for `idle_seconds`. Nothing is settled, so a record comes again when
    its lock ends, which is soon if the lock is short. It fails if one comes again
    before that.
    """
    found: dict[tuple[str, int, int], Record[Any, Any]] = {}
    consumer: ShareConsumer[Any, Any] = ShareConsumer(
        *topics,
        group_id=group,
        bootstrap_servers=admin.bootstrap_servers,
        acknowledgement="explicit",
        network=admin.network,
    )
    async with consumer:
        records = aiter(consumer)
        with anyio.fail_after(60):
            while True:
                assigned = {each.topic for each in consumer.assignment}
                has_fetched = consumer.metrics()["fetch-total"] > 1
                before = len(found)
                for record in await take(records, 1_000, within=idle_seconds):
                    at = (record.topic, record.partition, record.offset)
                    first = found.setdefault(at, record)
                    assert first is record or not first.held, f"{record} came twice"
                if assigned == {*topics} and has_fetched and len(found) == before:
                    return list(found.values())


def offsets(records: Sequence[Record[Any, Any]]) -> list[int]:
    return [record.offset for record in records]
