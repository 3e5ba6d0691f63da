"""The queue between the member, which adds leases, and the application's readers.

All decisions are plain calls, without an await: a cancelled reader loses nothing.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Final

from sharecons._record import Record
from sharecons.consumer.deserializers import Deserializers, decode_lease
from sharecons.consumer.readers import Reader, Readers, Unacknowledged, insert_lease
from sharecons.consumer.stored_error import StoredError
from sharecons.consumer.unprocessed import Unprocessed, report_unprocessed
from sharecons.errors import ClosedError, ConsumerStateError, Error, NotSubscribedError
from sharecons.log import get_logger
from sharecons.metrics.recorder import FetchSize, MetricsRecorder
from sharecons.net.group_configs import GroupConfigReader
from sharecons.net.io.callbacks import log_unraised, run_callback
from sharecons.net.io.event_loop import Clock, Waiter
from sharecons.protocol.acknowledge.batcher import AcknowledgeResult
from sharecons.protocol.acknowledge.delivered_leases import DeliveredLeases
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.results import lock_overrun, summarize
from sharecons.protocol.fetch.prefetch import Prefetch

__all__ = ["SLICE", "DeliveryQueue"]

SLICE: Final = 0.005
"""Seconds that a loop runs before other tasks run, and between implicit accepts."""

REJECT_GRACE: Final = 1.0
"""Seconds for a task to reject a record that could not be deserialized."""

Acknowledged = Callable[[list[AcknowledgeResult]], object]


class DeliveryQueue:
    """Leases on their way to the application; the member's `Listener`.

    Attributes:
        lease: the lease from which records are delivered, starting at its cursor.
        records: the records of that lease, deserialized up to the cursor.
        closed: no more records are delivered.
        is_ending: the same, but delivered records can still be acknowledged.
        subscribed: the consumer has topics.
        recorder: the consumer's metrics.
        delivered: finds the leases of delivered records.
        configs: the configs of the group.
    """

    def __init__(
        self,
        *,
        implicit: bool,
        clock: Clock,
        new_waiter: Callable[[], Waiter],
        recorder: MetricsRecorder,
        deserializers: Deserializers,
        configs: GroupConfigReader,
        on_acknowledged: Acknowledged | None,
        check_caller: Callable[[], None] = lambda: None,  # can raise WrongThreadError
    ) -> None:
        self.clock = clock
        self.lease: Lease | None = None
        self.records: list[Any] = []
        self.closed = self.subscribed = self.is_ending = False
        self.deserializers = deserializers
        self.on_acknowledged = on_acknowledged
        self.configs = configs
        self.recorder = recorder
        self.delivered = DeliveredLeases(clock)
        self._fetch_sizes: dict[Lease, FetchSize] = {}
        self._implicit = implicit
        self._readers = Readers(check_caller)
        self.new_waiter = new_waiter
        self._ready: deque[Lease] = deque()
        self._errors: deque[Exception] = deque()
        self._fatal_error: StoredError | None = None
        self._pause_at = clock()
        self._check_caller = check_caller
        self._log = get_logger(__name__)

    def attach(self, prefetch: Prefetch, wake_leaders: Callable[[], None]) -> None:
        """Set the prefetch control, and the function to call when its limit changed."""
        self._prefetch = prefetch
        self._wake_leaders = wake_leaders

    # Called by the member (`Listener`).

    def on_acquired(self, leases: Sequence[Lease]) -> None:
        if self.closed:
            # A fetch was in flight while closing; closing the session releases them.
            self._count_unprocessed(leases)
            return
        fetch_size = FetchSize(self.recorder, len(leases))
        for lease in leases:
            insert_lease(self._ready, lease)
            self._fetch_sizes[lease] = fetch_size
        if self.is_ending:
            self.keep_only(())
        self._readers.wake()

    def on_locks_lost(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            if lease in self._ready:
                self._ready.remove(lease)
                self._on_dropped(lease)
        self._readers.interrupt()
        self._readers.wake()

    def on_error(self, error: Error) -> None:
        self._errors.append(error)
        self._readers.wake()

    def on_fatal_error(self, error: Error) -> None:
        self.fail(StoredError(error))

    @property
    def has_ack_callback(self) -> bool:
        return self.on_acknowledged is not None

    def on_ack_results(self, results: list[AcknowledgeResult]) -> None:
        failed = [result for result in results if result.error is not None]
        if failed:
            self._log.warning("acknowledgements failed", **summarize(failed))
        if self.on_acknowledged is None:
            return
        error = run_callback("on_acknowledged", self.on_acknowledged, results)
        if error is not None and self.closed:
            log_unraised(error)
        elif error is not None:
            self.on_error(error)

    def fail(self, error: StoredError) -> None:
        """Raise this in every reader and later call; the first such error counts."""
        self._fatal_error = self._fatal_error or error
        self._readers.wake_all()

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
        if self.closed:
            raise ClosedError("the consumer is closed; create another ShareConsumer")
        self.raise_fatal_error()
        if reader.waiter.is_waiting:
            raise ConsumerStateError(
                "another task is already waiting for this loop's next record; start a "
                "separate `async for` loop in each task"
            )
        if not (self.subscribed or self.lease or self._ready or self._errors):
            raise NotSubscribedError(
                "the consumer has no topics; pass topics to ShareConsumer(), or call "
                "subscribe() before reading"
            )

    def raise_fatal_error(self) -> None:
        """Raise the error that ended the consumer, if any."""
        if self._fatal_error is not None:
            self._fatal_error.throw()

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
        self._count_processed(reader)
        self._prefetch.waiting_readers += 1
        self._wake_leaders()
        return self._readers.wait(reader, deadline)

    def end_wait(self, reader: Reader) -> None:
        """Note that the wait has ended, for any reason."""
        self._prefetch.waiting_readers -= 1
        self._readers.end_wait(reader)

    def wake_next(self) -> None:
        """Wake the next waiting reader if records or errors are left."""
        if self._readers.any_waiting and (
            self._ready or self._errors or self.remaining()
        ):
            self._readers.wake()

    def find_next(self, reader: Reader) -> bool:
        """Set `lease` to one with records, or return False; raises queued errors."""
        self._readers.release_removed(self.clock())
        while not self._has_live_records():
            if self.lease is not None:
                self._count_processed(reader)
                self._drop_lease()
            if self._errors:
                error = self._errors.popleft()
                self.wake_next()
                raise error
            if not self._ready:
                return False
            self._decode(self._ready.popleft())
        return True

    def hold(self, reader: Reader) -> None:
        """Deliver records of `lease` to this reader, starting at its cursor."""
        assert self.lease is not None, "served"
        self._readers.hold(reader, self.lease)

    def take(
        self, reader: Reader, max_records: int | None, *, first: bool = True
    ) -> tuple[int, list[Any]]:
        """Deliver records of `lease`; return the index of the first, and the records.

        Raises:
            DeserializationError: for the first record. If the caller has records
                already (`first` is False), the next call raises it.
        """
        assert self.lease is not None, "served"
        lease, start = self.lease, self.lease.cursor
        stop = len(self.records)
        if max_records is not None:
            stop = min(stop, start + max_records)
        self.hold(reader)
        if self.deserializers:
            stop, failure = self.deserializers.apply_all(self.records, start, stop)
            if failure is not None and first and stop == start:
                lease.cursor = start + 1
                self._note_undeserializable(reader, lease, self.records[start])
                raise failure
        lease.cursor = stop
        return start, self.records[start:stop]

    def take_more(self, reader: Reader) -> bool:
        """Continue with the next lease; return False if there is none, or an error."""
        if self._errors and not self._has_live_records():
            return False
        return self.find_next(reader)

    def deserialize(self, reader: Reader, lease: Lease, record: Record) -> Any:
        """Deserialize one delivered record; raises DeserializationError."""
        try:
            return self.deserializers.apply(record)
        except BaseException:
            self._note_undeserializable(reader, lease, record)
            raise

    def release_unacknowledged(self, reader: Reader) -> None:
        """Release the reader's records: the application has not received them."""
        if not self.closed:
            self._readers.settle(reader, accept=False)

    def settle(self, reader: Reader) -> None:
        """Accept the reader's records, unless the consumer is closed."""
        if not self.closed:
            self._readers.settle(reader, accept=True)

    def remove_reader(self, reader: Reader) -> None:
        """Remove a reader that will not read again; can be called in any thread."""
        if not self.closed:
            self._readers.remove(reader)

    @property
    def has_unacknowledged(self) -> bool:
        """True while a reader has records that its next read accepts."""
        return self._readers.can_accept_passed

    def accept_passed(self) -> bool:
        """Accept the records that a loop has passed; return whether there were any."""
        return not self.closed and self._readers.accept_passed()

    def remaining(self) -> int:
        """Return how many records of `lease` have not been delivered."""
        return len(self.records) - self.lease.cursor if self.lease else 0

    def keep_only(self, topics: Collection[str]) -> None:
        """Deliver records of these topics only; release queued records of others."""
        dropped = [each for each in self._unprocessed() if each.topic not in topics]
        for lease in dropped:
            lease.release_remaining()
            if lease is self.lease:
                self._drop_lease()
            else:
                self._ready.remove(lease)
                self._on_dropped(lease)
        self._readers.interrupt()

    def end_loops(self) -> None:
        """Deliver no more records; each reader's next request settles, then ends it."""
        self.is_ending = True
        self.keep_only(())
        self._readers.wake_all()

    def close(self) -> None:
        """Deliver no more records; closing the share session releases unsettled ones.

        In implicit mode this does not accept delivered records.
        """
        self.closed = True
        for error in self._errors:
            log_unraised(error)
        self._count_unprocessed(self._unprocessed())
        while self._ready:
            self._on_dropped(self._ready.popleft())
        self._drop_lease()
        self._readers.interrupt()
        self._readers.wake_all()

    def _note_undeserializable(
        self, reader: Reader, lease: Lease, record: Record
    ) -> None:
        self._readers.note_undeserializable(
            reader, lease, record, self.clock() + REJECT_GRACE
        )
        self.wake_next()

    def _has_live_records(self) -> bool:
        lease = self.lease
        if lease is None or not self.remaining() or lease.lock_scope.ended:
            return False
        if self.clock() < lease.deadline:
            return True
        self.recorder.on_lock_overrun(self.remaining())
        self._log.warning(
            "acquisition locks ended before the records were delivered",
            topic=lease.topic,
            partition=lease.share_partition.partition,
            records=self.remaining(),
            reason=lock_overrun(lease, lease.deadline, self.clock()),
        )
        return False

    def _count_processed(self, reader: Reader | None) -> None:
        """Report to the prefetch control which delivered records were processed."""
        readers, records = self._readers.processing(reader)
        self._prefetch.on_requested(
            self.clock(), expired=self.remaining(), processing=records, busy=readers
        )

    def _drop_lease(self) -> None:
        self.lease = None
        self.records = []

    def _decode(self, lease: Lease) -> None:
        if lease.lock_scope.ended or self.clock() >= lease.deadline:
            self._on_dropped(lease)
            if not lease.lock_scope.ended:
                self.recorder.on_lock_overrun(lease.count)
            return
        self.records, size, errors = decode_lease(lease)
        self._errors += errors
        self.lease = lease
        self.delivered.add(lease)
        now = self.clock()
        self._fetch_sizes.pop(lease).add(size, now)
        self._prefetch.on_delivered(lease.count, now)
        self._wake_leaders()

    def _on_dropped(self, lease: Lease) -> None:
        """Note that a lease leaves the queue undecoded."""
        self._prefetch.on_dropped(lease.count)
        self._fetch_sizes.pop(lease).add(0, self.clock())

    def _unprocessed(self) -> list[Lease]:
        present = [self.lease] if self.lease is not None and self.remaining() else []
        return [*present, *self._ready]

    def _count_unprocessed(self, leases: Sequence[Lease]) -> None:
        unprocessed: list[Unprocessed] = [
            (lease, self.records[lease.cursor :] if lease is self.lease else None)
            for lease in leases
        ]
        report_unprocessed(unprocessed, self.recorder, self.configs, self._log)
