"""`await consumer.poll()`: a reader for each task that polls.

This module is not compiled, as `asking` is not.
"""

import asyncio
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary, ref

from sharecons.consumer.delivery_queue import DeliveryQueue
from sharecons.consumer.readers import Reader
from sharecons.consumer.receive import wait_for_lease
from sharecons.errors import DeserializationError
from sharecons.net.background import current_task
from sharecons.record import Record

__all__ = ["Poller"]


class Poller:
    """The readers of poll().

    A task that polls again accepts, in implicit mode, what it got before. What a task
    has in hand when it ends is released.

    On Python 3.11, asyncio.wait_for() runs `consumer.poll()` as a task of its own. All
    polls that are tasks of their own count as one reader.

    Args:
        deliveries: where records come from.
        coroutine: the code of the public coroutine that calls `poll`.
    """

    def __init__(
        self, deliveries: DeliveryQueue, coroutine: CodeType | None = None
    ) -> None:
        self._deliveries = deliveries
        self._coroutine = coroutine
        self._polls: WeakKeyDictionary[Any, _Poll] = WeakKeyDictionary()
        self._idle: list[Reader] = []  # those of polls that are tasks of their own

    async def poll(self, deadline: float, most: int | None) -> list[Record[Any, Any]]:
        """Wait for records until the deadline, then take what is ready."""
        task: Any = current_task()
        poll = self._polls.get(task)
        if poll is None:
            if self._is_own_task(task):
                return await self._poll_in_own_task(deadline, most)
            poll = self._polls[task] = _Poll(self._deliveries)
            if isinstance(task, asyncio.Future):
                _on_end(task, ref(self))
        return await self._poll(poll.reader, deadline, most)

    async def _poll_in_own_task(
        self, deadline: float, most: int | None
    ) -> list[Record[Any, Any]]:
        for reader in self._idle:
            self._deliveries.settle(reader)
        reader = self._idle.pop() if self._idle else _new_reader(self._deliveries)
        try:
            return await self._poll(reader, deadline, most)
        finally:
            self._idle.append(reader)

    async def _poll(
        self, reader: Reader, deadline: float, most: int | None
    ) -> list[Record[Any, Any]]:
        records: list[Record[Any, Any]] = []
        if await wait_for_lease(self._deliveries, reader, deadline) is not None:
            try:
                self._take(reader, records, most)
            except DeserializationError:
                raise
            except BaseException:
                self._deliveries.release_unacknowledged(reader)
                raise
        return records

    def _take(
        self, reader: Reader, records: list[Record[Any, Any]], most: int | None
    ) -> None:
        deliveries = self._deliveries
        while True:
            room = None if most is None else most - len(records)
            _, taken = deliveries.take(reader, room, first=not records)
            records += taken
            if not taken or len(records) == most or not deliveries.take_more(reader):
                break
        deliveries.wake_next()

    def _is_own_task(self, task: Any) -> bool:
        if self._coroutine is None or not isinstance(task, asyncio.Task):
            return False
        return getattr(task.get_coro(), "cr_code", None) is self._coroutine

    def forget(self, task: Any) -> None:
        """Release what a task has in hand that has ended."""
        self._polls.pop(task, None)


class _Poll:
    """The reader of one task; it leaves when this is deleted."""

    def __init__(self, deliveries: DeliveryQueue) -> None:
        self.reader = _new_reader(deliveries)
        self._deliveries = deliveries

    def __del__(self) -> None:
        self._deliveries.remove_reader(self.reader)


def _new_reader(deliveries: DeliveryQueue) -> Reader:
    return Reader(deliveries.new_unacknowledged(), deliveries.new_waiter())


def _on_end(task: "asyncio.Future[Any]", poller: "ref[Poller]") -> None:
    """Have the poller forget the task when it ends.

    Trio deletes ended tasks; on asyncio the application may still refer to one.
    """

    def ended(task: "asyncio.Future[Any]") -> None:
        found = poller()
        if found is not None:
            found.forget(task)

    task.add_done_callback(ended)
