"""The query's member of the share group: acquires, enters into the ledger, accepts.

It is the client's own member (`sharecons.net.member`) with another listener: no record
is decoded here, and none is handed to anybody. What an answer acquired is entered into
the ledger, and accepted once that is durable; so locks are held for as long as one
append takes. What becomes of a crash:

- before the append: the broker lets go what was acquired, and gives it again; a
  delivery is used up.
- between the append and the acceptance: given again, and found in the ledger; it is
  accepted then, and entered once.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol

import anyio
from anyio.to_thread import run_sync

from sharecons._record import AcknowledgeType
from sharecons.consumer.group_setup import (
    DEFAULT_DELIVERY_LIMIT,
    prepare_group,
    read_delivery_limit,
)
from sharecons.errors import AuthorizationError, ConnectionFailedError, Error, fresh
from sharecons.log import get_logger
from sharecons.metrics.counters import Counters
from sharecons.net.cluster import Cluster
from sharecons.net.io.event import AutoResetEvent
from sharecons.net.io.wakeup import FOREVER
from sharecons.net.member import Member
from sharecons.protocol.acknowledge.batcher import AcknowledgeResult
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.results import summarize
from sharecons.protocol.messages import FetchSettings
from sharecons.spark.errors import LedgerTakenError
from sharecons.spark.ledger import AcquiredRange
from sharecons.wire import consumer_apis

__all__ = ["Acquirer", "AcquirerStats", "Joining", "LedgerWriter"]

CLOSE_TIMEOUT: Final = 10.0
CONNECT_TIMEOUT: Final = 10.0

_log = get_logger(__name__)


class LedgerWriter(Protocol):
    """Where it is written down what the group gave; called in a thread of its own."""

    def enter(self, taken: Sequence[AcquiredRange]) -> int:
        """Write down what is new of this, durably; tell how many offsets were."""
        ...

    @property
    def full(self) -> bool:
        """So much waits for Spark that no more should come."""
        ...


@dataclass(slots=True)
class AcquirerStats:
    """Counts of one member since it joined, for the query's progress.

    Attributes:
        acquired: offsets that came, again or not.
        entered: those that were new to the ledger.
        redelivered: those that came on a delivery other than their first.
        last_deliveries: those that came on what may be their last one.
        refused: those whose acceptance failed; they come again.
        lost: those whose lock was gone before they were entered; they come again.
    """

    acquired: int = 0
    entered: int = 0
    redelivered: int = 0
    last_deliveries: int = 0
    refused: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """How to be a member."""

    settings: FetchSettings
    topics: tuple[str, ...]
    offset_reset: str | None = None
    rack: str | None = None
    request_timeout: float = 30.0


@dataclass(eq=False)
class Acquirer:
    """One member at work, the `Listener` of its own `Member`.

    Attributes:
        figures: what it has counted.
        told: called when something was entered, or found out.
        error: what ended it, once it ended by itself.
        trouble: the last error that did not end it: a broker cannot be reached, or a
            partition not be fetched.
    """

    joining: Joining
    cluster: Cluster
    book: LedgerWriter
    told: Callable[[], None]
    figures: AcquirerStats = field(default_factory=AcquirerStats)
    error: BaseException | None = None
    trouble: Error | None = None

    def __post_init__(self) -> None:
        self._member: Member | None = None
        self._came: list[Lease] = []
        self._unworked = 0
        self._bell = AutoResetEvent()
        self._entering = anyio.Lock()
        self._stopping = False
        self._delivery_limit = DEFAULT_DELIVERY_LIMIT

    # What the driver does.

    def stop(self) -> None:
        """Acquire no more; enter and accept what is here, leave the group, and end."""
        self._stopping = True
        self._bell.set()

    def wake(self) -> None:
        """The book may have room again."""
        self._bell.set()

    def fail(self, error: Error) -> None:
        """Acquire no more, and end with this."""
        self.error = error
        self._bell.set()

    def check(self) -> None:
        """Raise why records that the group has may not have come.

        Raises:
            Error: what it had trouble with, or that no partition was assigned to it.
        """
        if self.trouble is not None:
            raise fresh(self.trouble)
        member = self._member
        assigned = member is not None and member.membership.assignment
        if not assigned and not self.figures.acquired:
            raise ConnectionFailedError(
                f"group {self.joining.settings.group_id!r} assigned no partition to "
                "this query within idleTimeout; start it again, or make that longer"
            )

    def between_entries(self) -> AbstractAsyncContextManager[object]:
        """Keep an entry from beginning while something is told to the ledger.

        What is being entered is locked when that begins, and perhaps not any more when
        it ends: the start offset may pass it meanwhile, and were it forgotten then, it
        would be entered as new.
        """
        return self._entering

    async def run(self) -> None:
        """Be a member until `stop`; raises what made it impossible.

        Cancelling this leaves at once: the broker lets go what was acquired.
        """
        self._member = member = await self._join()
        self.trouble = None
        try:
            async with anyio.create_task_group() as tasks:
                member.start(tasks)
                member.subscribe(self.joining.topics)
                try:
                    await self._work(member)
                except Exception as error:  # noqa: BLE001 (raised below, in no group)
                    self.error = error
                finally:
                    await self._leave(member)
                    tasks.cancel_scope.cancel()
        finally:
            await member.release()
        if self.error is not None:
            raise self.error

    # The member tells (`sharecons.net.member.Listener`).

    def on_acquired(self, leases: Sequence[Lease], here: bool = False) -> bool:
        self._came += leases
        self._bell.set()
        return False

    def on_locks_lost(self, leases: Sequence[Lease]) -> None:
        """Nothing to do: a lease knows that its term is over."""

    def on_error(self, error: Error) -> None:
        if isinstance(error, AuthorizationError):
            # The query would wait for records that it never gets, or end without them.
            self.fail(error)
            return
        # The member goes on trying; the query waits for records.
        self.trouble = error
        _log.warning("trouble", group=self.joining.settings.group_id, reason=str(error))

    def on_fatal_error(self, error: Error) -> None:
        self.fail(error)

    @property
    def has_ack_callback(self) -> bool:
        return False

    def on_ack_results(self, results: list[AcknowledgeResult]) -> None:
        failed = [result for result in results if result.error is not None]
        if failed:
            count = sum(r.last_offset - r.first_offset + 1 for r in failed)
            self.figures.refused += count
            _log.warning(
                "acceptance failed; the records come again", **summarize(failed)
            )

    # Its work.

    async def _join(self) -> Member:
        joining = self.joining
        connection = await self.cluster.connect_any(timeout=CONNECT_TIMEOUT, retry=True)
        try:
            consumer_apis.check_share_groups(connection.served, connection.broker)
            group_id = joining.settings.group_id
            if joining.offset_reset is not None:
                await prepare_group(
                    connection, group_id, joining.offset_reset, joining.request_timeout
                )
            self._delivery_limit = await read_delivery_limit(
                connection, group_id, joining.request_timeout
            )
        except BaseException:
            await connection.aclose()
            raise
        member = Member(
            joining.settings,
            self.cluster,
            self,
            Counters(),
            rack=joining.rack,
            request_timeout=joining.request_timeout,
        )
        # All that comes is entered at once: there is no pace to find out. An entry
        # takes about as long as a fetch, however much is in either, and the cores are
        # Spark's too: few and large ones take a third less CPU.
        member.prefetch.allowance = joining.settings.max_records
        member.prefetch.overlaps = False
        member.use_connection(connection)
        return member

    async def _work(self, member: Member) -> None:
        while not self._stopping and self.error is None:
            self._want(member)
            await self._bell.wait_until(FOREVER)
            await self._enter()

    def _want(self, member: Member) -> None:
        """Ask for more, if the book has room.

        While it has none, what came counts as not worked off: so the pace lets no
        fetch go out.
        """
        member.prefetch.waiting = 0 if self.book.full else 1
        if member.prefetch.waiting:
            count, self._unworked = self._unworked, 0
            if count:
                member.prefetch.handed_out(count, anyio.current_time())
            member.prefetch.asked(anyio.current_time())
            member.wake_leaders()

    async def _enter(self) -> None:
        async with self._entering:
            await self._enter_all()

    async def _enter_all(self) -> None:
        came, self._came = self._came, []
        self._unworked += sum(lease.count for lease in came)
        live = [lease for lease in came if self._holds(lease)]
        if not live:
            return
        taken = [taken for lease in live for taken in _taken(lease)]
        self._count(taken)
        # Shielded: half an append would be one that nobody knows of.
        with anyio.CancelScope(shield=True):
            self.figures.entered += await run_sync(self.book.enter, taken)
        for lease in live:
            _accept(lease)
        self.told()

    async def _leave(self, member: Member) -> None:
        """Say what is to be said, and leave the group.

        Not if another driver has the ledger: it is the same member, and what we sent
        now would be said in its name.
        """
        with anyio.move_on_after(CLOSE_TIMEOUT, shield=True):
            if self._stopping and self.error is None:
                await self._drain(member)
            if not isinstance(self.error, LedgerTakenError):
                await member.close()
        member.abandon()

    async def _drain(self, member: Member) -> None:
        """Enter and accept what a fetch that is under way may bring yet.

        To let it go would use up a delivery of each record.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_entering, tasks.cancel_scope)
            await member.drain()
            tasks.cancel_scope.cancel()

    async def _keep_entering(self, scope: anyio.CancelScope) -> None:
        try:
            while True:
                await self._enter()
                await self._bell.wait_until(FOREVER)
        except Exception as error:  # noqa: BLE001 (raised by `run`)
            self.error = error
            scope.cancel()

    def _holds(self, lease: Lease) -> bool:
        """Tell whether the locks are still ours: others may have the records if not."""
        holds = not lease.term.ended and anyio.current_time() < lease.deadline
        if not holds:
            self.figures.lost += lease.count
        return holds

    def _count(self, taken: Sequence[AcquiredRange]) -> None:
        figures = self.figures
        figures.acquired += sum(each.size for each in taken)
        figures.redelivered += sum(t.size for t in taken if t.delivery_count > 1)
        last = sum(t.size for t in taken if t.delivery_count >= self._delivery_limit)
        figures.last_deliveries += last
        if last:
            _log.warning(
                "records came on what may be their last delivery: were this driver to "
                "die now they would be archived",
                records=last,
                delivery_limit=self._delivery_limit,
            )

    def snapshot(self) -> Mapping[str, int]:
        """Give the figures as the progress shows them."""
        figures = self.figures
        return {name: getattr(figures, name) for name in figures.__slots__}


def _taken(lease: Lease) -> list[AcquiredRange]:
    topic_id, partition = lease.share_partition
    return [
        AcquiredRange(lease.topic, topic_id, partition, first, last, count)
        for first, last, count in lease.acquired
    ]


def _accept(lease: Lease) -> None:
    """Accept all that was acquired, holes too: the broker does not tell them apart."""
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
    lease.unpacked(offsets)
    lease.acknowledge_implicitly(0, len(offsets), AcknowledgeType.ACCEPT)
