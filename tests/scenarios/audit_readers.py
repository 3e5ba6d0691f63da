"""Applications of the consumers' audit: loops, polls and batches in several tasks.

All times are of the event loop (`virtual_time`).
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio

from sharecons import Record, ShareConsumer
from sharecons.errors import CommitTimeoutError, LockLostError
from tests.scenarios.audit_hazards import block, running_trio
from tests.scenarios.audit_journal import Delivery, delivery_of, number_of

__all__ = ["STYLES", "ConsumerJournal", "Readers"]

STYLES: Final = (
    "loop",
    "loop",
    "poll",
    "short polls",
    "batches",
    "explicit loop",
    "explicit poll",
    "explicit short polls",
    "explicit batches",
)

WORK: Final = (0.0, 0.0, 0.0, 0.001, 0.02, 0.3)
"""Seconds that the application needs for a record."""

CLEAR: Final = 0.1
"""The rest of a lock in which an acknowledgement is still in time for sure."""


class ConsumerJournal:
    """The work of applications, by life, position and delivery count.

    Attributes:
        seen: deliveries that an application has received, and when.
        done: deliveries that an application has processed.
        done_at: when.
        rejected: deliveries that it has rejected.
        lost: deliveries that it has processed without a lock.
        blocks: when an application has blocked the event loop.
    """

    def __init__(self) -> None:
        self.seen: dict[Delivery, float] = {}
        self.done: dict[Delivery, int] = {}
        self.done_at: dict[Delivery, float] = {}
        self.rejected: dict[Delivery, int] = {}
        self.lost: set[Delivery] = set()
        self.blocks: list[float] = []
        self._closed: set[int] = set()

    def close(self, life: int) -> None:
        """Ignore everything that this life does from now on: it is killed."""
        self._closed.add(life)

    def see(self, life: int, record: Record[Any, Any]) -> None:
        if life not in self._closed:
            self.seen.setdefault(delivery_of(life, record), anyio.current_time())

    def finish(self, life: int, record: Record[Any, Any]) -> None:
        """Enter a record that is processed."""
        if life in self._closed:
            return
        delivery = delivery_of(life, record)
        self.done[delivery] = number_of(record)
        self.done_at[delivery] = anyio.current_time()
        self.check_lock(life, record)

    def check_lock(self, life: int, record: Record[Any, Any]) -> None:
        """Enter a lost lock if a processed record's lock ended before its accept."""
        delivery = delivery_of(life, record)
        if delivery in self.done and (not record.held or record.lock_remaining < CLEAR):
            self.lost.add(delivery)

    def reject(self, life: int, record: Record[Any, Any]) -> None:
        if life not in self._closed:
            self.rejected[delivery_of(life, record)] = number_of(record)


class Readers:
    """The tasks of one life, which read until the consumer is closed or cancelled."""

    def __init__(
        self,
        consumer: ShareConsumer[Any, Any],
        journal: ConsumerJournal,
        life: int,
        chance: random.Random,
        *,
        style: str,
        is_calm: bool,
    ) -> None:
        self._consumer = consumer
        self._journal = journal
        self._life = life
        self._chance = chance
        self._style = style.removeprefix("explicit ")
        self._is_explicit = style.startswith("explicit")
        self._is_calm = is_calm

    async def run(self) -> None:
        """Read until cancelled; loops that the application leaves start again."""
        reads: dict[str, Callable[[], Awaitable[None]]] = {
            "loop": self._loop,
            "poll": self._poll,
            "short polls": self._poll_in_tasks,
            "batches": self._read_batches,
        }
        while True:
            await reads[self._style]()
            await anyio.sleep(0.01)

    async def _loop(self) -> None:
        async for record in self._consumer:
            self._journal.see(self._life, record)
            if self._leaves():
                return
            await self._process(record)

    async def _poll(self) -> None:
        while True:
            records = await self._consumer.poll(
                timeout=self._chance.choice([0.0, 0.1, 2.0]),
                max_records=self._chance.choice([1, 10, None]),
            )
            await self._process_all(records)

    async def _poll_in_tasks(self) -> None:
        """Poll as `asyncio.wait_for` does: each call in a task of its own."""
        while True:
            timeout = self._chance.choice([0.05, 1.0])
            limit = self._chance.choice([0.01, 0.3, 5.0])
            poll = self._consumer.poll(timeout=timeout)
            try:
                records = await _wait_for(poll, limit)
            except TimeoutError:
                continue
            await self._process_all(records)

    async def _read_batches(self) -> None:
        async for batch in self._consumer.batches():
            if self._leaves():
                return
            await self._process_all([*batch], batch=batch)

    async def _process_all(self, records: list[Any], batch: Any = None) -> None:
        for record in records:
            self._journal.see(self._life, record)
        for record in records:
            await self._process(record, accepts=batch is None)
        if batch is not None or not self._is_explicit:
            # All are accepted together, by the batch or the next poll (consumer.md,
            # "Polling"): the locks of the first can end while the last are processed.
            for record in records:
                self._journal.check_lock(self._life, record)
        if batch is not None and self._is_explicit:
            _try(batch.accept)

    async def _process(self, record: Record[Any, Any], accepts: bool = True) -> None:
        await anyio.sleep(self._chance.choice(WORK))
        if not self._is_calm and self._chance.random() < 0.002:
            block(self._chance.choice([0.5, 20.0, 70.0]))
            self._journal.blocks.append(anyio.current_time())
        if not self._is_calm and self._chance.random() < 0.05:
            self._release(record)
            return
        if number_of(record) % 37 == 0:
            self._journal.reject(self._life, record)
            _try(record.reject)
            return
        self._journal.finish(self._life, record)
        if self._is_explicit and accepts:
            _try(record.accept)
        if self._chance.random() < 0.01:
            await self._commit()

    def _release(self, record: Record[Any, Any]) -> None:
        """Return a record: now, later, or after a renewal."""
        match self._chance.choice(["now", "later", "renew"]):
            case "now":
                _try(record.release)
            case "later":
                after = self._chance.choice([0.5, 5.0, 50.0])
                _try(lambda: record.release(after=after))
            case _:
                _try(record.renew)
                _try(record.release)

    async def _commit(self) -> None:
        try:
            await self._consumer.commit(timeout=self._chance.choice([0.01, 5.0]))
        except CommitTimeoutError:
            pass

    def _leaves(self) -> bool:
        return not self._is_calm and self._chance.random() < 0.01


def _try(verb: Callable[[], None]) -> None:
    """Acknowledge a record, unless its lock is lost."""
    try:
        verb()
    except LockLostError:
        pass


async def _wait_for(awaitable: Any, limit: float) -> list[Any]:
    """Await something for a limited time; on asyncio of Python 3.11 in another task.

    On trio limits need no task, and the end of a task that polls releases its records
    (docs/consumer.md, "Polling").

    Raises:
        TimeoutError: the time is over.
    """
    if running_trio() is None:
        return await asyncio.wait_for(awaitable, limit)
    with anyio.fail_after(limit):
        found: list[Any] = await awaitable
    return found
