"""A queue with a dead-letter topic, and its worker, on either broker."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

import anyio

from sharecons import DeadLetterQueue, RetryPolicy, ShareGroupAdmin, ShareWorker
from sharecons.copies.dead_letter_headers import Origin, read_origin
from tests.dead_letters.letters import records_of
from tests.scenarios.embedded_admin import AnyAdmin
from tests.scenarios.queue import Queue
from tests.scenarios.share_workers import wait_until_settled

__all__ = ["LIMIT_2", "TWICE", "Setup", "archived_offsets"]

TWICE = RetryPolicy(max_attempts=2, initial=0.05, maximum=0.05)
LIMIT_2: Mapping[str, str] = MappingProxyType({"share.delivery.count.limit": "2"})


class Setup:
    """A queue of its own with a dead-letter topic."""

    def __init__(
        self,
        admin: AnyAdmin,
        config: Mapping[str, str] = MappingProxyType({}),
        *,
        topics: Mapping[str, str] | None = None,
    ) -> None:
        self.admin = admin
        self.queue = Queue(admin, **config)
        if topics is not None:
            self.queue.topic = admin.create_topic(config=topics)
        self.dead = admin.create_topic(config=topics)

    def worker(self, handler: Any, **options: Any) -> ShareWorker[Any, Any]:
        return self.queue.worker(
            handler,
            **{
                "max_wait": 0.1,
                "dead_letter": DeadLetterQueue(self.dead),
                "retry": TWICE,
                **options,
            },
        )

    @asynccontextmanager
    async def working(
        self, handler: Any, **options: Any
    ) -> AsyncIterator[ShareWorker[Any, Any]]:
        """Run a worker; stop it at the end of the block."""
        worker = self.worker(handler, **options)
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(worker.run)
                yield worker
                worker.stop()

    async def wait_until_settled(self, *, within: float = 15.0) -> None:
        partitions = {self.queue.topic: 1}
        group = self.queue.group
        await wait_until_settled(self.admin, group, partitions, within=within)

    async def letters(self) -> list[Any]:
        async with ShareGroupAdmin(
            bootstrap_servers=self.admin.bootstrap_servers, network=self.admin.network
        ) as client:
            return await records_of(client, self.dead)

    async def origins(self) -> list[Origin]:
        """Return the origins of the dead letters, by their offsets at the source."""
        found = [read_origin(letter.headers) for letter in await self.letters()]
        return sorted((each for each in found if each), key=lambda each: each.offset)


def archived_offsets(log: str) -> list[int]:
    """Return the offsets of partition 0 that log lines name as archived."""
    lines = [each for each in log.splitlines() if "delivery are archived" in each]
    return [
        offset
        for first, last in re.findall(r"-0@(\d+)(?:-(\d+))?", " ".join(lines))
        for offset in range(int(first), int(last or first) + 1)
    ]
