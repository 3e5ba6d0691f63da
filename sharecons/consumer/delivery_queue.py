"""The queue between a member's buffered leases and the application's readers.

All decisions are plain calls, without an await: a cancelled reader loses nothing.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from sharecons._record import Record
from sharecons.consumer.readers import Reader, Readers, Unacknowledged
from sharecons.deserializers import Deserializers
from sharecons.errors import ClosedError, ConsumerStateError, NotSubscribedError
from sharecons.member.lease_buffer import LeaseBuffer
from sharecons.net.io.event_loop import Waiter
from sharecons.protocol.acknowledge.leases import Lease

__all__ = ["SLICE", "DeliveryQueue"]

SLICE: Final = 0.005
"""Seconds that a loop runs before other tasks run, and between implicit accepts."""

REJECT_GRACE: Final = 1.0
"""Seconds for a task to reject a record that could not be deserialized."""


class DeliveryQueue:
    """Passes the records of a `LeaseBuffer` to readers, and settles them.

    Attributes:
        buffer: has the records.
        clock, recorder: the buffer's.
        deserializers: are applied to each record.
        is_ending: no more records are delivered.
        subscribed: the consumer has topics.
        new_waiter: makes what wakes a reader.
    """

    def __init__(
        self,
        buffer: LeaseBuffer,
        readers: Readers,
        *,
        implicit: bool,
        subscribed: bool,
        new_waiter: Callable[[], Waiter],
        deserializers: Deserializers,
        check_caller: Callable[[], None] = lambda: None,  # can raise WrongThreadError
    ) -> None:
        self.buffer = buffer
        self.clock = buffer.clock
        self.recorder = buffer.recorder
        self.subscribed = subscribed
        self.is_ending = False
        self.deserializers = deserializers
        self.new_waiter = new_waiter
        self._implicit = implicit
        self._readers = readers
        self._pause_at = self.clock()
        self._check_caller = check_caller

    # Called by readers.

    def new_unacknowledged(self) -> Unacknowledged:
        return Unacknowledged(implicit=self._implicit)

    def check(self, reader: Reader) -> None:
        """Check that a reader can be served.

        Raises:
            ClosedError, NotSubscribedError, ConsumerStateError, WrongThreadError.
            Error: the error that ended the consumer.
        """
        self._check_caller()
        if self.buffer.closed:
            raise ClosedError("the consumer is closed; create another ShareConsumer")
        self.buffer.raise_fatal_error()
        if reader.waiter.is_waiting:
            raise ConsumerStateError(
                "another task is already waiting for this loop's next record; start a "
                "separate `async for` loop in each task"
            )
        if not (self.subscribed or self.buffer.lease or self.buffer.has_next):
            raise NotSubscribedError(
                "the consumer has no topics; pass topics to ShareConsumer(), or call "
                "subscribe() before reading"
            )

    def settle_previous(self, reader: Reader) -> None:
        """Settle the records delivered to the reader before; raises as `check`."""
        self.check(reader)
        reader.woken = False
        self._readers.settle(reader, accept=True)

    @property
    def is_pause_due(self) -> bool:
        """True if other tasks must run before this reader is served.

        A loop can run for SLICE seconds, but woken readers run first.
        """
        return self._readers.any_woken or self.clock() >= self._pause_at

    def end_pause(self) -> None:
        """Start another SLICE after other tasks have run."""
        self._pause_at = self.clock() + SLICE

    def wait(self, reader: Reader, deadline: float) -> Awaitable[bool]:
        """Wait for records or errors, as `Waiter.wait`; call `end_wait` afterwards.

        The wait can end before the deadline without either.
        """
        busy, processing = self._readers.processing(reader)
        self.buffer.begin_wait(busy=busy, processing=processing)
        return self._readers.wait(reader, deadline)

    def end_wait(self, reader: Reader) -> None:
        """Withdraw the request of `wait`, whether or not it returned a record."""
        self.buffer.end_wait()
        self._readers.end_wait(reader)

    def wake_next(self) -> None:
        """Wake the next waiting reader if records or errors are left."""
        if self._readers.any_waiting and self.buffer.has_next:
            self._readers.wake()

    def find_next(self, reader: Reader, *, raises: bool = True) -> bool:
        """Find a lease with records, or return False; raises queued errors.

        Raises:
            ClosedError: a signal has stopped the consumer, and `raises` is true.
        """
        if self.is_ending:
            if raises:
                raise ClosedError(
                    "a signal has stopped the consumer: it returns no records"
                )
            return False
        self._readers.release_removed(self.clock())
        busy, processing = self._readers.processing(reader)
        try:
            return self.buffer.find_next(
                raises=raises, busy=busy, processing=processing
            )
        except BaseException:
            self.wake_next()  # the error is for this reader; records can be left
            raise

    def hold(self, reader: Reader) -> None:
        """Deliver records of the lease to this reader, starting at its cursor."""
        assert self.buffer.lease is not None, "found"
        self._readers.hold(reader, self.buffer.lease)

    def take(
        self, reader: Reader, max_records: int | None, *, first: bool = True
    ) -> tuple[int, list[Any]]:
        """Deliver records of the lease; return the index of the first, and the records.

        Raises:
            DeserializationError: for the first record. If the caller has records
                already (`first` is False), the next call raises it.
        """
        lease, records = self.buffer.lease, self.buffer.records
        assert lease is not None, "found"
        start, stop = lease.cursor, len(records)
        if max_records is not None:
            stop = min(stop, start + max_records)
        self.hold(reader)
        if self.deserializers:
            stop, failure = self.deserializers.apply_all(records, start, stop)
            if failure is not None and first and stop == start:
                lease.cursor = start + 1
                self._note_undeserializable(reader, lease, records[start])
                try:
                    raise failure
                finally:
                    failure = None  # its traceback refers to this frame
        lease.cursor = stop
        return start, records[start:stop]

    def take_more(self, reader: Reader) -> bool:
        """Continue with the next lease; return False if there is none, or an error."""
        return self.find_next(reader, raises=False)

    def deserialize(self, reader: Reader, lease: Lease, record: Record) -> Any:
        """Deserialize one delivered record; raises DeserializationError."""
        try:
            return self.deserializers.apply(record)
        except BaseException:
            self._note_undeserializable(reader, lease, record)
            raise

    def release_unacknowledged(self, reader: Reader) -> None:
        """Release the reader's records: the application has not received them."""
        if not self.buffer.closed:
            self._readers.settle(reader, accept=False)

    def settle(self, reader: Reader) -> None:
        """Accept the reader's records, unless the consumer is closed."""
        if not self.buffer.closed:
            self._readers.settle(reader, accept=True)

    def remove_reader(self, reader: Reader) -> None:
        """Remove a reader that will not read again; can be called in any thread."""
        if not self.buffer.closed:
            self._readers.remove(reader)

    def on_subscribed(self, *, subscribed: bool) -> None:
        """Handle another subscription, or none: buffered records can be gone."""
        self.subscribed = subscribed
        self._readers.interrupt()

    def end_loops(self) -> None:
        """Deliver no more records; each reader's next request settles, then ends it."""
        self.is_ending = True
        # Other members receive the buffered records now, not after the close.
        self.buffer.keep_only(())
        self._readers.interrupt()
        self._readers.wake_all()

    def _note_undeserializable(
        self, reader: Reader, lease: Lease, record: Record
    ) -> None:
        self._readers.note_undeserializable(
            reader, lease, record, self.clock() + REJECT_GRACE
        )
        self.wake_next()
