"""The loop over records; this code runs once per record.

`async for` calls `__anext__` and awaits the `NextRecord` that it returns. If the loop
has records, awaiting it takes an index and a look at the clock. The coroutine
`receive.next_record` does everything else, between leases and every SLICE seconds: it
accepts passed records, lets other tasks run, finds the next records and checks locks.

Leaving a loop deletes its iterator, which releases the current record. So nothing else
can refer to the iterator: its state is in a `RecordReader`, and tracebacks do not
reference it.
"""

from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any, Final, Generic, Self, cast, final

from mypy_extensions import mypyc_attr

from sharecons.consumer.delivery_queue import SLICE, DeliveryQueue
from sharecons.consumer.readers import Reader
from sharecons.consumer.receive import next_record
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.record import KeyT, Record, ValueT

__all__ = ["NextRecord", "RecordIterator"]

AT_ONCE: Final = float("-inf")


class RecordReader(Reader):
    """Takes records from the queue's lease, until it must call the queue again."""

    def __init__(self, queue: DeliveryQueue, on_progress: Callable[[], None]) -> None:
        super().__init__(
            queue.new_unacknowledged(), queue.new_waiter(), per_record=True
        )
        self._queue = queue
        self._on_progress = on_progress
        self._clock = queue.clock
        self._deserializes = bool(queue.deserializers)
        self._lease: Lease | None = None
        self._records: Sequence[Any] = ()
        self._pause_at = AT_ONCE

    def interrupt(self) -> None:
        self._pause_at = AT_ONCE

    def steps(self, iterator: object) -> Generator[Any, Any, Any]:
        """Return a generator that returns the next record."""
        lease = self._lease
        if (
            lease is None
            or lease.cursor >= len(self._records)
            or self._clock() >= self._pause_at
        ):
            self._pause_at = AT_ONCE
            return next_record(self._queue, self, iterator).__await__()
        if self._deserializes:
            return _deserialize(self, lease)
        index = lease.cursor
        lease.cursor = index + 1
        return _return(self._records[index])

    def serve(self, lease: Lease) -> Any:
        """Return the lease's next record, and the others at the next calls."""
        queue = self._queue
        self._lease = lease
        self._records = queue.buffer.records
        queue.hold(self)
        self._pause_at = min(self._clock() + SLICE, lease.locks.deadline)
        if len(self._records) - lease.cursor > 1:
            # A single record is passed only when the next one is requested.
            self._on_progress()
        try:
            return self.take(lease)
        finally:
            queue.wake_next()

    def take(self, lease: Lease) -> Any:
        """Return the record at the lease's cursor, and advance the cursor."""
        index = lease.cursor
        lease.cursor = index + 1
        record = self._records[index]
        if self._deserializes:
            record = self._queue.deserialize(self, lease, record)
        return record


class RecordIterator(Generic[KeyT, ValueT]):
    """`async for record in consumer`.

    Ends when the consumer is closed. Cancelling it while it waits loses nothing. Use
    one loop per task.
    """

    def __init__(self, queue: DeliveryQueue, on_progress: Callable[[], None]) -> None:
        self._queue = queue
        self.reader = RecordReader(queue, on_progress)

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Record[KeyT, ValueT]]:
        return cast("Coroutine[Any, Any, Record[KeyT, ValueT]]", NextRecord(self))

    def __del__(self) -> None:
        self._queue.remove_reader(self.reader)


# Generators, not coroutines: nothing is thrown into a generator that never yields.


def _return(record: Any) -> Generator[Any, Any, Any]:
    return record
    yield


def _deserialize(reader: RecordReader, lease: Lease) -> Generator[Any, Any, Any]:
    return reader.take(lease)
    yield


@final
@mypyc_attr(free_list_len=1)
class NextRecord:
    """The awaitable that `anext(iterator)` returns; it does nothing until awaited.

    `async for` only calls `__await__`. The coroutine methods make
    `asyncio.create_task(anext(iterator))` possible.
    """

    __slots__ = ("_iterator", "_steps")

    def __init__(self, iterator: RecordIterator[Any, Any]) -> None:
        self._iterator = iterator
        self._steps: Any = None

    def __await__(self) -> Generator[Any, Any, Any]:
        iterator = self._iterator
        return iterator.reader.steps(iterator)

    def send(self, value: Any) -> Any:
        if self._steps is None:
            self._steps = self.__await__()
        return self._steps.send(value)

    def throw(self, error: Any, value: Any = None, traceback: Any = None) -> Any:
        if self._steps is None:
            self._steps = _return(None)
        if value is None and traceback is None:
            return self._steps.throw(error)
        return self._steps.throw(error, value, traceback)

    def close(self) -> None:
        if self._steps is None:
            self._steps = _return(None)
        self._steps.close()
