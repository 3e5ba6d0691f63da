"""`await consumer.poll()`: a reader for each task that polls.

This module is not compiled, as `receive` is not.
"""

import asyncio
import sys
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

    In implicit mode a poll accepts the records of the task's previous poll. Records
    that a task has not settled when it ends are released.

    On Python 3.11, asyncio.wait_for() runs its coroutine in a task of its own. Polls in
    it count as polls of the task that waits, as on later versions. Unlike there, a
    coroutine that fails releases its records.

    An application can also make `consumer.poll()` itself a task. All polls that are
    tasks of their own count as one reader.

    Args:
        queue: returns the records.
        coroutine: the code of the public coroutine that calls `poll`.
    """

    def __init__(self, queue: DeliveryQueue, coroutine: CodeType | None = None) -> None:
        self._queue = queue
        self._coroutine = coroutine
        self._polls: WeakKeyDictionary[Any, _Poll] = WeakKeyDictionary()
        self._idle_readers: list[Reader] = []  # of polls in tasks of their own

    async def poll(
        self, deadline: float, max_records: int | None
    ) -> list[Record[Any, Any]]:
        """Wait for records until the deadline, then take what is ready."""
        task: Any = current_task()
        poll = self._polls.get(task)
        if poll is None:
            caller = _caller_of(task)
            if caller is task and self._is_own_task(task):
                return await self._poll_in_own_task(deadline, max_records)
            poll = self._add(task, caller)
        if poll.has_failed:
            poll.has_failed = False
            self._queue.release_unacknowledged(poll.reader)
        return await self._poll(poll.reader, deadline, max_records)

    def _add(self, task: Any, caller: Any) -> "_Poll":
        """Return the reader of a task, which is the reader of its caller."""
        poll = self._polls.get(caller) or _Poll(self._queue)
        for each in {task, caller}:
            if each not in self._polls:
                self._polls[each] = poll
                if isinstance(each, asyncio.Future):
                    _on_end(each, ref(self))
        return poll

    async def _poll_in_own_task(
        self, deadline: float, max_records: int | None
    ) -> list[Record[Any, Any]]:
        for reader in self._idle_readers:
            self._queue.settle(reader)
        reader = (
            self._idle_readers.pop() if self._idle_readers else _new_reader(self._queue)
        )
        try:
            return await self._poll(reader, deadline, max_records)
        finally:
            self._idle_readers.append(reader)

    async def _poll(
        self, reader: Reader, deadline: float, max_records: int | None
    ) -> list[Record[Any, Any]]:
        records: list[Record[Any, Any]] = []
        if await wait_for_lease(self._queue, reader, deadline) is not None:
            try:
                self._take(reader, records, max_records)
            except DeserializationError:
                raise
            except BaseException:
                self._queue.release_unacknowledged(reader)
                raise
        return records

    def _take(
        self, reader: Reader, records: list[Record[Any, Any]], max_records: int | None
    ) -> None:
        queue = self._queue
        while True:
            limit = None if max_records is None else max_records - len(records)
            _, taken = queue.take(reader, limit, first=not records)
            records += taken
            if not taken or len(records) == max_records or not queue.take_more(reader):
                break
        queue.wake_next()

    def _is_own_task(self, task: Any) -> bool:
        if self._coroutine is None or not isinstance(task, asyncio.Task):
            return False
        return getattr(task.get_coro(), "cr_code", None) is self._coroutine

    def remove_task(self, task: Any) -> None:
        """Release the records of a task that has ended.

        A task that has a caller leaves them to it, unless it failed.
        """
        poll = self._polls.pop(task, None)
        if poll is not None and (task.cancelled() or task.exception()):
            poll.has_failed = True


class _Poll:
    """The reader of one task; deleting this removes the reader.

    Attributes:
        has_failed: a task that polled for its caller has failed since.
    """

    def __init__(self, queue: DeliveryQueue) -> None:
        self.has_failed = False
        self.reader = _new_reader(queue)
        self._queue = queue

    def __del__(self) -> None:
        self._queue.remove_reader(self.reader)


if sys.version_info >= (3, 12):

    def _caller_of(task: Any) -> Any:
        """Return the task: wait_for() makes no other ones."""
        return task

else:

    def _caller_of(task: Any) -> Any:
        """Return the task that waits for this one by asyncio.wait_for(), or this one.

        Nothing refers to the waiting task but its coroutine.
        """
        if not isinstance(task, asyncio.Task):
            return task
        for other in asyncio.all_tasks():
            awaited: Any = other.get_coro()
            while awaited is not None:
                if getattr(awaited, "cr_code", None) is asyncio.wait_for.__code__ and (
                    awaited.cr_frame.f_locals["fut"] is task
                ):
                    return _caller_of(other)
                awaited = getattr(awaited, "cr_await", None)
        return task


def _new_reader(queue: DeliveryQueue) -> Reader:
    return Reader(queue.new_unacknowledged(), queue.new_waiter(), is_loop=False)


def _on_end(task: "asyncio.Future[Any]", poller: "ref[Poller]") -> None:
    """Remove the task from the poller when it ends.

    Needed on asyncio only, where the application can still refer to an ended task.
    """

    def on_done(task: "asyncio.Future[Any]") -> None:
        owner = poller()
        if owner is not None:
            owner.remove_task(task)

    task.add_done_callback(on_done)
