"""The leases that a member has acquired, until they are delivered.

All decisions are plain calls, without an await: a cancelled reader loses nothing.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Protocol

from sharecons.errors import Error
from sharecons.log import get_logger
from sharecons.member.group_configs import GroupConfigReader
from sharecons.member.lease_decoder import decode_lease, read_undelivered
from sharecons.member.record_source import Acknowledged
from sharecons.member.stored_error import StoredError
from sharecons.member.unprocessed import Unprocessed, report_unprocessed
from sharecons.metrics.recorder import FetchSize, MetricsRecorder
from sharecons.net.io.callbacks import log_unraised, run_callback
from sharecons.net.io.event_loop import FOREVER, Clock
from sharecons.protocol.acknowledge.ack_errors import buffer_overrun
from sharecons.protocol.acknowledge.delivered_leases import DeliveredLeases
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult
from sharecons.protocol.fetch.demand import FetchDemand

__all__ = ["BufferListener", "LeaseBuffer", "insert_lease"]

OVERRUN_INTERVAL: Final = 60.0
"""Seconds between two lines about locks that ended in the buffer."""


class BufferListener(Protocol):
    """Is called when the buffer changes; outside of the tasks that take from it."""

    def on_ready(self) -> None:
        """Records or an error can be taken."""

    def on_locks_lost(self, leases: Sequence[Lease]) -> bool:
        """All locks of these leases are lost, of delivered records as well.

        Return whether the listener logs this.
        """
        ...

    def on_acks_failed(self, results: Sequence[AcknowledgeResult]) -> None:
        """Acknowledgements have failed: a renewal that fails has lost its lock."""

    def on_failed(self) -> None:
        """An error has ended the member: `raise_fatal_error` raises it."""

    def on_closing(self) -> None:
        """Accept delivered records: the buffer is about to close."""


class LeaseBuffer:
    """Leases in the order of their delivery, and errors; the member calls its `on_…`.

    One lease at a time is decoded: `lease`. Its cursor advances as its records are
    delivered.

    Attributes:
        listener: is called when the buffer changes.
        lease: the lease from which records are delivered, starting at its cursor.
        records: the decoded records of that lease.
        closed: nothing more is delivered.
        on_acknowledged: the application's callback, or None.
        on_undelivered: is called with records whose locks have ended before they were
            delivered, if some of them were delivered before; None: nothing is called.
        delivered: finds the leases of delivered records.
        configs: the configs of the group.
        recorder: the metrics of the member.
    """

    def __init__(
        self,
        clock: Clock,
        recorder: MetricsRecorder,
        configs: GroupConfigReader,
        value_views: bool = False,
        *,
        log_fields: Mapping[str, str],
    ) -> None:
        self.clock = clock
        self.recorder = recorder
        self.configs = configs
        self._value_views = value_views
        self.lease: Lease | None = None
        self.records: list[Any] = []
        self.closed = False
        self.on_acknowledged: Acknowledged | None = None
        self.on_undelivered: Callable[[Sequence[Any]], object] | None = None
        self.delivered = DeliveredLeases(clock)
        self._fetch_sizes: dict[Lease, FetchSize] = {}
        self._ready: deque[Lease] = deque()
        self._kept_topics: frozenset[str] | None = None  # None: all
        self._errors: deque[Exception] = deque()
        self._fatal_error: StoredError | None = None
        self._overrun_count = 0
        self._last_overrun: dict[str, object] = {}
        self._next_overrun_line = -FOREVER
        self._log = get_logger(__name__, **log_fields)

    def attach(self, listener: BufferListener, demand: FetchDemand) -> None:
        """Set the listener, and the demand, which counts what leaves the buffer."""
        self.listener = listener
        self._demand = demand

    # Called by the member.

    def on_acquired(self, leases: Sequence[Lease]) -> None:
        if self.closed:
            # A fetch was in flight while closing; closing the session releases them.
            self._count_unprocessed(leases)
            return
        fetch_size = FetchSize(self.recorder, len(leases))
        for lease in leases:
            insert_lease(self._ready, lease)
            self._fetch_sizes[lease] = fetch_size
        self._release_others(leases)  # a fetch was in flight when the topics changed
        self.listener.on_ready()

    def on_locks_lost(self, leases: Sequence[Lease]) -> bool:
        for lease in leases:
            if lease in self._ready:
                self._ready.remove(lease)
                self._on_lost(lease, self._on_dropped(lease))
        return self.listener.on_locks_lost(leases)

    def on_error(self, error: Error) -> None:
        self._errors.append(error)
        self.listener.on_ready()

    def on_fatal_error(self, error: Error) -> None:
        self.fail(StoredError(error))

    @property
    def has_ack_callback(self) -> bool:
        return self.on_acknowledged is not None

    def on_ack_results(self, results: list[AcknowledgeResult]) -> None:
        failed = [result for result in results if result.error is not None]
        if failed:
            self.listener.on_acks_failed(failed)
        if self.on_acknowledged is None:
            return
        error = run_callback("on_acknowledged", self.on_acknowledged, results)
        if error is not None and self.closed:
            log_unraised(self._log, error)
        elif error is not None:
            self.on_error(error)

    def fail(self, error: StoredError) -> None:
        """Raise this in every later call; the first such error counts."""
        self._fatal_error = self._fatal_error or error
        self.listener.on_failed()

    # The state.

    @property
    def has_failed(self) -> bool:
        """True if an error has ended the member."""
        return self._fatal_error is not None

    def raise_fatal_error(self) -> None:
        """Raise the error that ended the member, if any."""
        if self._fatal_error is not None:
            self._fatal_error.throw()

    @property
    def has_next(self) -> bool:
        """True if records, leases or errors are left, whose locks might have ended."""
        return bool(self._ready or self._errors or self.remaining())

    @property
    def count(self) -> int:
        """How many records were acquired and not delivered."""
        return self.remaining() + self._demand.buffered

    def remaining(self) -> int:
        """Return how many records of `lease` have not been delivered."""
        return len(self.records) - self.lease.cursor if self.lease else 0

    def has_live_records(self) -> bool:
        """Return whether `lease` has records left, with their locks."""
        lease = self.lease
        if lease is None or not self.remaining() or lease.lock_scope.ended:
            return False
        if self._is_live(lease):
            return True
        self._note_overrun(lease, self.remaining())
        return False

    # Delivering.

    def begin_wait(self, *, busy: int = 0, processing: int = 0) -> None:
        """Fetch for a task that waits for records; as `find_next`."""
        self._demand.begin_wait(
            self.clock(), expired=self.remaining(), processing=processing, busy=busy
        )

    def end_wait(self) -> None:
        """Withdraw the demand of one waiting reader."""
        self._demand.end_wait()

    def find_next(
        self, *, raises: bool = True, busy: int = 0, processing: int = 0
    ) -> bool:
        """Set `lease` to one with records, or return False; raises queued errors.

        Args:
            raises: return False instead of raising an error; a later call raises it.
            busy: how many other tasks process records.
            processing: how many records they process.
        """
        while not self.has_live_records():
            if self.lease is not None:
                self._demand.on_processed(
                    self.clock(),
                    expired=self.remaining(),
                    processing=processing,
                    busy=busy,
                )
                lease, records = self.lease, self.records
                self._drop_lease()
                self._on_lost(lease, records)
            if self._errors:
                if raises:
                    raise self._errors.popleft()
                return False
            if not self._ready:
                return False
            self._decode(self._ready.popleft())
        return True

    def take_leases(self) -> list[Lease]:
        """Deliver all leases undecoded, for a user that does not call `find_next`.

        It settles them by `Lease.set_offsets` and `Lease.acknowledge_implicitly`.
        """
        leases, now = list(self._ready), self.clock()
        self._ready.clear()
        for lease in leases:
            self._fetch_sizes.pop(lease).add(0, now)
        if leases:
            self._demand.on_delivered(sum([each.count for each in leases]), now)
            self._demand.on_processed(now)
        return leases

    def take_error(self) -> Exception | None:
        """Return the next error that `find_next` would raise, or None."""
        return self._errors.popleft() if self._errors else None

    def take(self, max_records: int | None) -> list[Any]:
        """Deliver records of `lease`, which `find_next` has set."""
        assert self.lease is not None, "found"
        start, stop = self.lease.cursor, len(self.records)
        if max_records is not None:
            stop = min(stop, start + max_records)
        self.lease.cursor = stop
        return self.records[start:stop]

    def keep_only(self, topics: Collection[str]) -> None:
        """Deliver records of these topics only from now on.

        Records of others are released: buffered ones now, later ones as they arrive.
        """
        self._kept_topics = frozenset(topics)
        self._release_others(self._unprocessed())
        self.delivered.keep_only(topics)

    def _release_others(self, leases: Sequence[Lease]) -> None:
        kept = self._kept_topics
        for lease in leases:
            if kept is None or lease.topic in kept:
                continue
            lease.release_remaining()
            if lease is self.lease:
                self._drop_lease()
            else:
                self._ready.remove(lease)
                self._on_dropped(lease)

    def close(self) -> None:
        """Deliver no more; closing the share session releases unsettled records."""
        self.listener.on_closing()
        self.closed = True
        for error in self._errors:
            log_unraised(self._log, error)
        self._log_overruns()
        self._count_unprocessed(self._unprocessed())
        while self._ready:
            self._on_dropped(self._ready.popleft())
        self._drop_lease()

    def _drop_lease(self) -> None:
        self.lease = None
        self.records = []

    def _deadline(self, lease: Lease) -> float:
        """Return when the locks of the undelivered records end."""
        return lease.locks.deadline

    def _is_live(self, lease: Lease) -> bool:
        return not lease.lock_scope.ended and self.clock() < self._deadline(lease)

    def _decode(self, lease: Lease) -> None:
        if not self._is_live(lease):
            self._on_expired(lease)
            return
        self.lease, self.records = lease, self._decode_records(lease)
        self._demand.on_delivered(lease.count, self.clock())

    def _decode_records(self, lease: Lease) -> list[Any]:
        records, size, errors = decode_lease(lease, self._value_views, self._log)
        if errors:
            self._errors += errors
            self.recorder.damaged_rejected += sum(
                e.last_offset - e.first_offset + 1 for e in errors if e.rejected
            )
        self.delivered.add(lease)
        self._fetch_sizes.pop(lease).add(size, self.clock())
        return records

    def _on_expired(self, lease: Lease) -> None:
        """Drop a lease whose locks have ended before its first record was delivered."""
        self._on_lost(lease, self._on_dropped(lease))
        if not lease.lock_scope.ended:
            self._note_overrun(lease, lease.count)

    def _note_overrun(self, lease: Lease, records: int) -> None:
        """Count records whose locks have ended; log their number once a minute."""
        self.recorder.lock_overruns += records
        self._overrun_count += records
        now = self.clock()
        self._last_overrun = {
            "topic": lease.topic,
            "partition": lease.share_partition.partition,
            "reason": buffer_overrun(lease, self._deadline(lease), now),
        }
        if now >= self._next_overrun_line:
            self._next_overrun_line = now + OVERRUN_INTERVAL
            self._log_overruns()

    def _log_overruns(self) -> None:
        """Log the number of records since the last line, if there are any."""
        if self._overrun_count:
            self._log.warning(
                "acquisition locks ended before the records were delivered",
                records=self._overrun_count,
                **self._last_overrun,
            )
            self._overrun_count = 0

    def _on_dropped(self, lease: Lease) -> list[Any] | None:
        """Subtract a lease that leaves the buffer; return its records if decoded."""
        self._demand.on_dropped(lease.count)
        self._fetch_sizes.pop(lease).add(0, self.clock())
        return None

    def _on_lost(self, lease: Lease, records: list[Any] | None) -> None:
        """Report the records that were not delivered before their locks ended."""
        # Kafka allows no delivery limit below 2, so a first delivery is never the last.
        if self.on_undelivered is not None and lease.highest_delivery_count > 1:
            if records is None:
                records = read_undelivered(lease)
            if lost := records[lease.cursor :]:
                self.on_undelivered(lost)
        lease.give_back()
        lease.payload = b""

    def _unprocessed(self) -> list[Lease]:
        present = [self.lease] if self.lease is not None and self.remaining() else []
        return [*present, *self._ready]

    def _count_unprocessed(self, leases: Sequence[Lease]) -> None:
        unprocessed: list[Unprocessed] = [
            (lease, self.records[lease.cursor :] if lease is self.lease else None)
            for lease in leases
        ]
        report_unprocessed(unprocessed, self.recorder, self.configs, self._log)


def insert_lease(ready: deque[Lease], lease: Lease) -> None:
    """Insert a lease behind those with as many deliveries.

    Records on their last delivery are delivered first: releasing them unprocessed
    archives them. Most leases are on their first delivery, so the scan is short.
    """
    place = len(ready)
    while (
        place and ready[place - 1].highest_delivery_count < lease.highest_delivery_count
    ):
        place -= 1
    ready.insert(place, lease)
