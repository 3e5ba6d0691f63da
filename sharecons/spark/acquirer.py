"""The query's member of the share group: it acquires, writes to the ledger, accepts.

It takes the leases of a `LeaseSource` undecoded. The acquired offsets are written to
the ledger, and accepted once they are durable there. So acquisition locks are held for
the duration of one write. After a crash

- before the write, the broker releases the offsets and delivers them again. That uses
  up a delivery.
- between the write and the acceptance, the offsets are delivered again, found in the
  ledger, and accepted without being written a second time.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from sharecons._record import AcknowledgeType
from sharecons.errors import AuthorizationError, ConnectionFailedError, fresh
from sharecons.log import get_logger
from sharecons.member.record_source import LeaseSource
from sharecons.member.settings import MemberSettings
from sharecons.member.share_source import ShareSource
from sharecons.member.source_options import SourceOptions
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult
from sharecons.spark.acquirer_stats import AcquirerStats
from sharecons.spark.errors import LedgerTakenError
from sharecons.spark.ledger import AcquiredRange

__all__ = ["Acquirer", "LedgerWriter", "MemberConfig"]

CLOSE_TIMEOUT: Final = 10.0

_log = get_logger(__name__)


class LedgerWriter(Protocol):
    """Writes acquired ranges to the ledger; called in a worker thread."""

    def write(self, ranges: Sequence[AcquiredRange]) -> int:
        """Write the offsets that are new to the ledger, and return their number.

        They are durable when this returns.
        """
        ...

    @property
    def room(self) -> int:
        """How many offsets can be acquired before Spark plans another batch."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """The query's member.

    Attributes:
        settings: how it connects, joins its group and fetches.
        topic_pattern: the regular expression of `subscribePattern`; then `topics` is
            empty, and `Acquirer.subscribe` is called with the topics that match.
    """

    settings: MemberSettings
    topics: tuple[str, ...]
    topic_pattern: str | None = None


@dataclass(eq=False)
class Acquirer:
    """Runs one member, and takes its leases.

    Attributes:
        on_change: called after each write to the ledger.
        error: the error that ended the member; None while it runs, or after `stop`.
        last_error: the last error after which the member retries: a broker cannot be
            reached, or a partition cannot be fetched.
    """

    config: MemberConfig
    ledger_writer: LedgerWriter
    on_change: Callable[[], None]
    stats: AcquirerStats = field(default_factory=AcquirerStats)
    error: BaseException | None = None
    last_error: Exception | None = None

    def __post_init__(self) -> None:
        self._source: LeaseSource | None = None
        self._leases: list[Lease] = []
        self._wakeup = AutoResetEvent()
        self._write_lock = anyio.Lock()
        self._stopping = False
        self._topics = self.config.topics
        self._group_id = self.config.settings.fetch.group_id
        self._is_subscribed = False

    # Called by the driver.

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Acquire from these topics, now and after joining again."""
        self._topics = topics
        if self._is_subscribed:
            assert self._source is not None, "subscribed"
            self._source.subscribe(topics)

    def stop(self) -> None:
        """Stop acquiring, write and accept the rest, leave the group, and end `run`."""
        self._stopping = True
        self._wakeup.set()

    def wake(self) -> None:
        """Acquire more if the ledger is no longer full."""
        self._wakeup.set()

    def fail(self, error: Exception) -> None:
        """Stop acquiring, and end `run` with this error."""
        self.error = error
        self._wakeup.set()

    def check_can_fetch(self) -> None:
        """Raise the error that explains why the member might have missed records.

        Raises:
            Error: the last connection or fetch error, the error of a fetch that is
                repeated now, or one that says that the group assigned no partition.
        """
        source = self._source
        if self.last_error is not None:
            raise fresh(self.last_error)
        if source is not None:
            source.check_can_fetch()
        assigned = source is not None and source.assignment
        if not assigned and not self.stats.acquired:
            raise ConnectionFailedError(
                f"group {self._group_id!r} assigned no partition to "
                "this query within idleTimeout; start it again, or make that longer"
            )

    def pause_writes(self) -> AbstractAsyncContextManager[object]:
        """Return a context manager during which no write to the ledger starts.

        A write checks the locks when it starts. If a lock ends during the write, the
        group's start offset can pass those offsets. If the ledger dropped them at that
        time, the write would take them for new.
        """
        return self._write_lock

    async def run(self) -> None:
        """Run the member until `stop` or `fail`.

        Cancelling this leaves the group immediately, and the broker releases the locks.

        Raises:
            Error: the member cannot join, or cannot continue.
        """
        self._source = source = self._new_source()
        await source.start()
        self.last_error = None
        try:
            source.subscribe(self._topics)
            self._is_subscribed = True
            await self._acquire_until_stopped(source)
        except Exception as error:  # noqa: BLE001 (raised below)
            self.error = error
        finally:
            self._is_subscribed = False
            await self._leave(source)
        if self.error is not None:
            raise self.error

    def _new_source(self) -> LeaseSource:
        return ShareSource(
            SourceOptions(
                settings=self.config.settings,
                start_tasks=self._start_tasks,
                on_acknowledged=self.on_ack_results,
                on_changed=self._on_changed,
            )
        )

    def _start_tasks(self, tasks: TaskGroup) -> None:
        tasks.start_soon(self._read_window)

    async def _read_window(self) -> None:
        """Read the group's configs, for `_request_more`, while the member joins."""
        assert self._source is not None, "starting"
        await self._source.configs.read()
        self._wakeup.set()

    # Called by the source.

    def _on_changed(self) -> None:
        source = self._source
        assert source is not None, "started"
        while (error := source.take_error()) is not None:
            self._on_error(error)
        # Nothing more is fetched before this is written.
        source.demand.nothing()
        self._leases += source.take_leases()
        if (error := source.fatal_error) is not None:
            self.fail(error)
        self._wakeup.set()

    def _on_error(self, error: Exception) -> None:
        if isinstance(error, AuthorizationError):
            # The query would wait for these records forever, or finish without them.
            self.fail(error)
            return
        # The member retries; the query waits for records.
        self.last_error = error
        _log.warning(
            "error while acquiring; retrying",
            group=self._group_id,
            reason=str(error),
        )

    def on_ack_results(self, results: list[AcknowledgeResult]) -> None:
        """Count records whose acceptance failed: they are delivered again."""
        failed = [result for result in results if result.error is not None]
        self.stats.refused += sum(r.last_offset - r.first_offset + 1 for r in failed)

    async def _acquire_until_stopped(self, source: LeaseSource) -> None:
        while not self._stopping and self.error is None:
            self._request_more(source)
            await self._wakeup.wait_until(FOREVER)
            await self._write_acquired()

    def _request_more(self, source: LeaseSource) -> None:
        """Let the member fetch what the ledger has room for.

        Acquired offsets are written immediately, so there is no pace to measure. A
        write takes about as long as a fetch, whatever their size, so few and large
        fetches leave more CPU to Spark (a third less here).
        """
        room = self.ledger_writer.room
        max_records = self.config.settings.fetch.max_records
        if room <= 0:
            source.demand.nothing()
        else:
            source.demand.rounds(
                min(room, max_records),
                # Whole batches would exceed a small room by up to a batch per leader.
                exact=room < max_records,
                window=source.configs.window,
            )

    async def _write_acquired(self) -> None:
        async with self._write_lock:
            await self._write_leases()

    async def _write_leases(self) -> None:
        leases, self._leases = self._leases, []
        locked = [lease for lease in leases if self._has_locks(lease)]
        if not locked:
            return
        ranges = [each for lease in locked for each in _ranges_of(lease)]
        self.stats.acquired_bytes += sum(len(each.payload or b"") for each in locked)
        assert self._source is not None, "started"
        self.stats.count(ranges, self._source.configs.delivery_limit)
        # Shielded: after a cancelled write its outcome would be unknown.
        with anyio.CancelScope(shield=True):
            self.stats.entered += await run_sync(self.ledger_writer.write, ranges)
        for lease in locked:
            _accept(lease)
        self.on_change()

    async def _leave(self, source: LeaseSource) -> None:
        """Send the pending acknowledgements and leave the group.

        Nothing is sent if another driver has taken the ledger over: it uses the same
        member id, and would be removed from the group.
        """
        with anyio.move_on_after(CLOSE_TIMEOUT, shield=True) as limit:
            if self._stopping and self.error is None:
                await self._drain(source)
        left = max(0.0, limit.deadline - anyio.current_time())
        is_taken = isinstance(self.error, LedgerTakenError)
        await source.close(left, leave=not is_taken)

    async def _drain(self, source: LeaseSource) -> None:
        """Wait for the fetches in flight, and write and accept what they acquire.

        Releasing these records would use up a delivery of each.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_writing, tasks.cancel_scope)
            await source.drain()
            tasks.cancel_scope.cancel()

    async def _keep_writing(self, scope: anyio.CancelScope) -> None:
        try:
            while True:
                await self._write_acquired()
                await self._wakeup.wait_until(FOREVER)
        except Exception as error:  # noqa: BLE001 (raised by `run`)
            self.error = error
            scope.cancel()

    def _has_locks(self, lease: Lease) -> bool:
        """Return whether the acquisition locks of a lease are still held.

        If not, other members might have acquired the records.
        """
        now = anyio.current_time()
        has_locks = not lease.lock_scope.ended and now < lease.locks.deadline
        if not has_locks:
            self.stats.lost += lease.count
            lease.give_back()
        return has_locks

    def snapshot(self) -> Mapping[str, int]:
        """Return the counts by name, as the query's progress shows them."""
        return self.stats.as_dict()


def _ranges_of(lease: Lease) -> list[AcquiredRange]:
    topic_id, partition = lease.share_partition
    return [
        AcquiredRange(lease.topic, topic_id, partition, first, last, count)
        for first, last, count in lease.acquired
    ]


def _accept(lease: Lease) -> None:
    """Accept all acquired offsets. Offsets without a record must be accepted too."""
    offsets: Sequence[int]
    if len(lease.acquired) == 1:
        first, last, _ = lease.acquired[0]
        offsets = range(first, last + 1)
    else:
        offsets = [
            offset
            for first, last, _ in lease.acquired
            for offset in range(first, last + 1)
        ]
    lease.set_offsets(offsets)
    lease.acknowledge_implicitly(0, len(offsets), AcknowledgeType.ACCEPT)
