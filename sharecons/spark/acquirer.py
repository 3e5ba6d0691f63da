"""The query's member of the share group: it acquires, writes to the ledger, accepts.

It is the client's `sharecons.member.member_tasks` with another listener, which neither
decodes nor delivers records. The acquired offsets are written to the ledger, and
accepted once they are durable there. So acquisition locks are held for the duration of
one write. After a crash

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
from anyio.to_thread import run_sync

from sharecons._record import AcknowledgeType
from sharecons.errors import AuthorizationError, ConnectionFailedError, Error, fresh
from sharecons.log import get_logger
from sharecons.member.group_configs import GroupConfigReader
from sharecons.member.group_setup import read_delivery_limit, set_offset_reset
from sharecons.member.member_tasks import MemberTasks
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.cluster import Cluster
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent
from sharecons.protocol.acknowledge.batcher import AcknowledgeResult
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.results import summarize
from sharecons.protocol.messages import FetchSettings
from sharecons.spark.errors import LedgerTakenError
from sharecons.spark.ledger import AcquiredRange
from sharecons.wire import consumer_apis

__all__ = ["Acquirer", "AcquirerStats", "LedgerWriter", "MemberConfig"]

CLOSE_TIMEOUT: Final = 10.0
CONNECT_TIMEOUT: Final = 10.0

_log = get_logger(__name__)


class LedgerWriter(Protocol):
    """Writes acquired ranges to the ledger; called in a worker thread."""

    def write(self, ranges: Sequence[AcquiredRange]) -> int:
        """Write the offsets that are new to the ledger, and return their number.

        They are durable when this returns.
        """
        ...

    @property
    def is_full(self) -> bool:
        """True while acquiring should pause until Spark has planned more batches."""
        ...


@dataclass(slots=True)
class AcquirerStats:
    """Numbers of offsets since the member joined, for the query's progress.

    Attributes:
        acquired: all acquired offsets, redeliveries included.
        entered: the new ones, which were written to the ledger.
        redelivered: the offsets with a delivery count above 1.
        last_deliveries: the offsets whose delivery count has reached the group's limit.
        refused: the offsets whose acceptance failed; they are delivered again.
        lost: those whose lock ended before they were written to the ledger; they are
            delivered again.
    """

    acquired: int = 0
    entered: int = 0
    redelivered: int = 0
    last_deliveries: int = 0
    refused: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """Settings of the group membership; times in seconds."""

    settings: FetchSettings
    topics: tuple[str, ...]
    offset_reset: str | None = None
    rack: str | None = None
    request_timeout: float = 30.0


@dataclass(eq=False)
class Acquirer:
    """Runs one member, and is its `Listener`.

    Attributes:
        on_change: called after each write to the ledger.
        error: the error that ended the member; None while it runs, or after `stop`.
        last_error: the last error after which the member retries: a broker cannot be
            reached, or a partition cannot be fetched.
    """

    config: MemberConfig
    cluster: Cluster
    ledger_writer: LedgerWriter
    on_change: Callable[[], None]
    stats: AcquirerStats = field(default_factory=AcquirerStats)
    error: BaseException | None = None
    last_error: Error | None = None

    def __post_init__(self) -> None:
        self._member: MemberTasks | None = None
        self._leases: list[Lease] = []
        self._unreported = 0
        self._wakeup = AutoResetEvent()
        self._write_lock = anyio.Lock()
        self._stopping = False
        self.configs = GroupConfigReader(self.config.settings.group_id)

    # Called by the driver.

    def stop(self) -> None:
        """Stop acquiring, write and accept the rest, leave the group, and end `run`."""
        self._stopping = True
        self._wakeup.set()

    def wake(self) -> None:
        """Acquire more if the ledger is no longer full."""
        self._wakeup.set()

    def fail(self, error: Error) -> None:
        """Stop acquiring, and end `run` with this error."""
        self.error = error
        self._wakeup.set()

    def check_can_fetch(self) -> None:
        """Raise the error that explains why the member might have missed records.

        Raises:
            Error: the last connection or fetch error, the error of a fetch that is
                repeated now, or one that says that the group assigned no partition.
        """
        member = self._member
        error = self.last_error
        if error is None and member is not None:
            error = member.problems.fetch_error()
        if error is not None:
            raise fresh(error)
        assigned = member is not None and member.membership.assignment
        if not assigned and not self.stats.acquired:
            raise ConnectionFailedError(
                f"group {self.config.settings.group_id!r} assigned no partition to "
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
        self._member = member = await self._join()
        self.last_error = None
        try:
            async with anyio.create_task_group() as tasks:
                member.start(tasks)
                member.subscribe(self.config.topics)
                try:
                    await self._acquire_until_stopped(member)
                except Exception as error:  # noqa: BLE001 (raised below, in no group)
                    self.error = error
                finally:
                    await self._leave(member)
                    tasks.cancel_scope.cancel()
        finally:
            await member.release()
        if self.error is not None:
            raise self.error

    # Called by the member (`sharecons.member.listener`).

    def on_acquired(self, leases: Sequence[Lease]) -> None:
        self._leases += leases
        self._wakeup.set()

    def on_locks_lost(self, leases: Sequence[Lease]) -> None:
        """Do nothing: `_has_locks` checks each lease before it is written."""

    def on_error(self, error: Error) -> None:
        if isinstance(error, AuthorizationError):
            # The query would wait for these records forever, or finish without them.
            self.fail(error)
            return
        # The member retries; the query waits for records.
        self.last_error = error
        _log.warning(
            "error while acquiring; retrying",
            group=self.config.settings.group_id,
            reason=str(error),
        )

    def on_fatal_error(self, error: Error) -> None:
        self.fail(error)

    @property
    def has_ack_callback(self) -> bool:
        return False

    def on_ack_results(self, results: list[AcknowledgeResult]) -> None:
        failed = [result for result in results if result.error is not None]
        if failed:
            count = sum(r.last_offset - r.first_offset + 1 for r in failed)
            self.stats.refused += count
            _log.warning(
                "acceptance failed; the records are delivered again",
                **summarize(failed),
            )

    async def _join(self) -> MemberTasks:
        config = self.config
        connection = await self.cluster.connect_any(timeout=CONNECT_TIMEOUT, retry=True)
        try:
            consumer_apis.check_share_groups(connection.served, connection.broker)
            group_id = config.settings.group_id
            if config.offset_reset is not None:
                await set_offset_reset(
                    connection,
                    self.cluster,
                    group_id,
                    config.offset_reset,
                    config.request_timeout,
                )
            self.configs.delivery_limit = await read_delivery_limit(
                connection, group_id, config.request_timeout
            )
        except BaseException:
            await connection.aclose()
            raise
        member = MemberTasks(
            config.settings,
            self.cluster,
            self,
            MetricsRecorder(),
            rack=config.rack,
            request_timeout=config.request_timeout,
        )
        # Acquired offsets are written immediately, so there is no rate to measure. A
        # write takes about as long as a fetch, whatever their size, so few and large
        # fetches leave more CPU to Spark (a third less here).
        member.demand.rounds(config.settings.max_records)
        member.use_connection(connection)
        return member

    async def _acquire_until_stopped(self, member: MemberTasks) -> None:
        while not self._stopping and self.error is None:
            self._request_more(member)
            await self._wakeup.wait_until(FOREVER)
            await self._write_acquired()

    def _request_more(self, member: MemberTasks) -> None:
        """Let the member fetch more, unless the ledger is full."""
        if self.ledger_writer.is_full:
            member.demand.nothing()
            return
        member.demand.rounds(self.config.settings.max_records)
        count, self._unreported = self._unreported, 0
        if count:
            now = anyio.current_time()
            member.demand.on_delivered(count, now)
            member.demand.on_processed(now)

    async def _write_acquired(self) -> None:
        async with self._write_lock:
            await self._write_leases()

    async def _write_leases(self) -> None:
        leases, self._leases = self._leases, []
        self._unreported += sum(lease.count for lease in leases)
        locked = [lease for lease in leases if self._has_locks(lease)]
        if not locked:
            return
        ranges = [each for lease in locked for each in _ranges_of(lease)]
        self._count_ranges(ranges)
        # Shielded: after a cancelled write its outcome would be unknown.
        with anyio.CancelScope(shield=True):
            self.stats.entered += await run_sync(self.ledger_writer.write, ranges)
        for lease in locked:
            _accept(lease)
        self.on_change()

    async def _leave(self, member: MemberTasks) -> None:
        """Send the pending acknowledgements and leave the group.

        Nothing is sent if another driver has taken the ledger over: it uses the same
        member id, and would be removed from the group.
        """
        with anyio.move_on_after(CLOSE_TIMEOUT, shield=True):
            if self._stopping and self.error is None:
                await self._drain(member)
            if not isinstance(self.error, LedgerTakenError):
                await member.close()
        member.abandon()

    async def _drain(self, member: MemberTasks) -> None:
        """Wait for the fetches in flight, and write and accept what they acquire.

        Releasing these records would use up a delivery of each.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_writing, tasks.cancel_scope)
            await member.drain()
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
        has_locks = not lease.lock_scope.ended and anyio.current_time() < lease.deadline
        if not has_locks:
            self.stats.lost += lease.count
        return has_locks

    def _count_ranges(self, ranges: Sequence[AcquiredRange]) -> None:
        stats = self.stats
        stats.acquired += sum(each.size for each in ranges)
        stats.redelivered += sum(t.size for t in ranges if t.delivery_count > 1)
        limit = self.configs.delivery_limit
        last = sum(t.size for t in ranges if t.delivery_count >= limit)
        stats.last_deliveries += last
        if last:
            _log.warning(
                "records were acquired on their last delivery; if this driver is "
                "killed before it accepts them, the broker archives them",
                records=last,
                delivery_limit=limit,
            )

    def snapshot(self) -> Mapping[str, int]:
        """Return the counts by name, as the query's progress shows them."""
        stats = self.stats
        return {name: getattr(stats, name) for name in stats.__slots__}


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
