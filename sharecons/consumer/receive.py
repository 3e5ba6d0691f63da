"""Waiting for records: the coroutines of loops.

This module is not compiled, because cancelling a compiled coroutine raises a
DeprecationWarning from Python 3.12 on. The code that runs per record is in `iterators`,
which is compiled.
"""

from collections.abc import AsyncIterator
from typing import Any, Generic, Self

import anyio
from anyio.lowlevel import checkpoint

from sharecons.batch import Batch
from sharecons.consumer.delivery_queue import SLICE, DeliveryQueue
from sharecons.consumer.readers import Reader, Readers
from sharecons.errors import ClosedError
from sharecons.instrumentation import MemberObserver
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.record import KeyT, ValueT

__all__ = [
    "BatchIterator",
    "EndedLoop",
    "ObservedLoop",
    "accept_passed_records",
    "next_record",
    "wait_for_lease",
]


async def wait_for_lease(
    queue: DeliveryQueue, reader: Reader, deadline: float
) -> Lease | None:
    """Return the lease with the next records, at its cursor; None after the deadline.

    This settles the reader's previous records. Cancelling it loses nothing.

    Raises:
        Error: as `DeliveryQueue.check`, or an error from the queue.
    """
    queue.settle_previous(reader)
    # A loop over records also calls the queue during a lease.
    is_poll = not (reader.per_record and queue.buffer.remaining())
    if is_poll:
        queue.recorder.on_poll_started(reader.poll_times, queue.clock())
    try:
        return await _find_lease(queue, reader, deadline)
    finally:
        if is_poll:
            queue.recorder.on_poll_ended(reader.poll_times, queue.clock())


async def _find_lease(
    queue: DeliveryQueue, reader: Reader, deadline: float
) -> Lease | None:
    if queue.is_pause_due:
        await checkpoint()
        queue.end_pause()
        queue.check(reader)
    while not queue.find_next(reader):
        woken = False
        try:
            woken = await queue.wait(reader, deadline)
        finally:
            queue.end_wait(reader)
            if not woken:
                queue.wake_next()  # if this wait was cancelled just as it was woken
        if not woken and queue.clock() >= deadline:
            return None
        queue.end_pause()
        queue.check(reader)
    return queue.buffer.lease


async def next_record(queue: DeliveryQueue, reader: Any, iterator: object) -> Any:
    """Return the next record of a loop whose reader has no more records.

    Keeps the iterator alive while waiting: deleting it would release its record.
    """
    try:
        lease = await wait_for_lease(queue, reader, FOREVER)
        assert lease is not None, "no deadline"
        return reader.serve(lease)
    except ClosedError:
        raise StopAsyncIteration from None
    except BaseException:
        del iterator  # or the traceback would keep it alive
        raise


class BatchIterator(Generic[KeyT, ValueT]):
    """`async for batch in consumer.batches()`.

    Ends when the consumer is closed. Cancelling it while it waits loses nothing. Use
    one loop per task.
    """

    def __init__(self, queue: DeliveryQueue) -> None:
        self._queue = queue
        self._reader = Reader(queue.new_unacknowledged(), queue.new_waiter())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch[KeyT, ValueT]:
        try:
            lease = await wait_for_lease(self._queue, self._reader, FOREVER)
            assert lease is not None, "no deadline"
            start, records = self._queue.take(self._reader, None)
        except ClosedError:
            raise StopAsyncIteration from None
        except BaseException:
            del self  # or the traceback would keep it alive
            raise
        return Batch(lease, records, start)

    def __del__(self) -> None:
        self._queue.remove_reader(self._reader)


class ObservedLoop:
    """A loop whose records are observed; only consumers with instrumentation have it.

    Deleting it deletes the loop, which releases the current record.
    """

    def __init__(self, loop: AsyncIterator[Any], observer: MemberObserver) -> None:
        self._loop = loop
        self._observer = observer

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            with self._observer.receiving() as receive:
                received = await anext(self._loop)
                receive.is_batch = isinstance(received, Batch)
                receive.records = received if receive.is_batch else (received,)
        except BaseException:
            del self  # or the traceback would keep the loop alive
            raise
        return received


class EndedLoop:
    """A loop without records: a signal stopped the consumer while it started."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        await checkpoint()
        raise StopAsyncIteration


async def accept_passed_records(readers: Readers, progress: AutoResetEvent) -> None:
    """Accept passed records while the application processes the current one.

    A loop sets `progress` at least every SLICE seconds while it takes records, so this
    can wait for it once `accept_passed` has found nothing. A loop that has taken all
    its records calls the queue, which accepts them: this then finds nothing, and runs
    once per SLICE instead of once per lease.
    """
    while True:
        await progress.wait_until(FOREVER)
        await anyio.sleep(SLICE)
        while readers.accept_passed():  # noqa: ASYNC110 (a pace, not a wait)
            await anyio.sleep(SLICE)
