"""One member of a share group, alive: the machines' tasks, and what they tell.

Three kinds of machine run here, each in a task with a connection of its own:
membership with the coordinator, routing with any broker, and one leader machine
for each broker that leads partitions of ours. What they tell each other goes
through this class; what they have for the application goes to its `Listener`.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from threading import get_ident
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup

from sharecons._record import TopicPartition
from sharecons.errors import ClosedError, Error
from sharecons.log import get_logger
from sharecons.metrics.counters import Counters
from sharecons.net.ack_dispatch import AckDispatcher, AckListener
from sharecons.net.cluster import Cluster, ReconnectingConnection
from sharecons.net.connection import Connection
from sharecons.net.driver import drive
from sharecons.net.error_reports import ErrorReports
from sharecons.net.io.clock import running_clock
from sharecons.net.io.event import AutoResetEvent
from sharecons.net.leader_tasks import LeaderTasks
from sharecons.net.log_messages import STALLED, THROTTLED
from sharecons.net.outages import Outages
from sharecons.protocol.acknowledge.batcher import (
    AcknowledgeResult,
    CommitWaiter,
    ResultLog,
    join_results,
)
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.backoff import spread_of
from sharecons.protocol.fetch.events import (
    Acquired,
    EndpointsLearned,
    FatalError,
    FetchRecovered,
    LeaderEvent,
    LeaderMoved,
    LocksLost,
    MetadataStale,
    PartitionError,
    Stalled,
    Throttled,
    UnexpectedResponse,
)
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.group.heartbeat import Membership, State
from sharecons.protocol.group.metadata import Metadata
from sharecons.protocol.messages import (
    Endpoint,
    FetchSettings,
    FindCoordinator,
    SharePartition,
)

__all__ = ["Listener", "Member"]


class Listener(AckListener, Protocol):
    """Whom a member tells what the application should know; plain calls."""

    def on_acquired(self, leases: Sequence[Lease], resume_now: bool = False) -> bool:
        """Records came; may be told outside of any task (`Leaders`).

        Who waits for them may go on `here`, before this returns; tells whether it did.
        """
        ...

    def on_locks_lost(self, leases: Sequence[Lease]) -> None:
        """The locks of these are gone."""

    def on_error(self, error: Error) -> None:
        """An error to raise once."""

    def on_fatal_error(self, error: Error) -> None:
        """An error that ends it all."""


class Member:
    """Runs a member's machines in a task group of its caller's.

    Attributes:
        membership, routing, pace: the machines that the consumer may look at.
        wake_leaders: to be called when the pace changed: they may have something to
            fetch.
    """

    def __init__(
        self,
        settings: FetchSettings,
        cluster: Cluster,
        listener: Listener,
        counters: Counters,
        *,
        rack: str | None,
        request_timeout: float,
        delivery_limit: int = 0,
    ) -> None:
        self.membership = Membership(settings.group_id, settings.member_id, rack=rack)
        self.metadata = Metadata(spread_of(settings.member_id))
        self.prefetch = Prefetch(settings.max_records)
        self._settings = settings
        self._cluster = cluster
        self._listener = listener
        self._counters = counters
        self._request_timeout = request_timeout
        self._membership_wakeup = AutoResetEvent()
        self._metadata_wakeup = AutoResetEvent()
        self._result_log = ResultLog(
            self._membership_wakeup.set, running_clock(), get_ident
        )
        self._result_log.delivery_limit = delivery_limit
        self._ack_dispatcher = AckDispatcher(self._result_log, counters, listener)
        self._leaders = LeaderTasks(
            settings,
            cluster,
            self.metadata,
            self.prefetch,
            self._result_log,
            counters,
            listener.on_acquired,
            self._ack_dispatcher.try_dispatch,
            self._on_locks_lost,
            self._on_leader_events,
            request_timeout=request_timeout,
        )
        self.wake_leaders = self._leaders.wake
        self._failed = False
        self._stopped = False
        self._changed: anyio.Event | None = None
        self._assignment: frozenset[SharePartition] = frozenset()
        self._any_broker = ReconnectingConnection(self._connect_any)
        self._log = get_logger(
            __name__, group=settings.group_id, member=settings.member_id
        )
        self._errors = ErrorReports(
            self.metadata, listener.on_error, self.wake_leaders, self._log
        )
        cluster.outages = Outages(self._log)

    # What the consumer does.

    def use_connection(self, connection: Connection) -> None:
        """Begin with this connection, for whatever any broker can answer."""
        self._any_broker.use(connection)

    def start(self, tasks: TaskGroup) -> None:
        """Run in these tasks."""
        self._leaders.start(tasks)
        tasks.start_soon(self._run_membership)
        tasks.start_soon(self._run_metadata)

    async def ask_any(self, request: Any) -> Any:
        """Ask whichever broker; raises what `Link.ask` does."""
        return await self._any_broker.ask(request, self._request_timeout)

    def subscribe(self, topics: tuple[str, ...]) -> None:
        now = anyio.current_time()
        self.membership.subscribe(topics, now)
        self.metadata.subscribed(topics, now)
        self._errors.on_subscribed()
        self._membership_wakeup.set()
        self._metadata_wakeup.set()
        self._on_membership_change()

    async def commit(self) -> list[AcknowledgeResult]:
        """Send what was marked, and wait for what becomes of it.

        Cancelling this changes nothing but that nobody waits: the requests go on.

        Raises:
            ClosedError: the tasks ended before all results came.
        """
        waiter = CommitWaiter()
        self._leaders.flush(waiter)
        while not waiter.done:
            if self._stopped:
                raise ClosedError("the consumer closed before its results came")
            await self._wait_for_change()
        return join_results(waiter.results)

    async def drain(self) -> None:
        """Fetch no more, and wait until all that came is settled, and said.

        A fetch that waits at a broker may still bring records: they reach the listener,
        which must go on settling what it is given. Nothing is let go by this, where
        `close` lets go what comes too late. Cancelling it is no harm; `close` is next.
        """
        self._leaders.drain()
        while not (self._leaders.all_ended or self._stopped):
            await self._wait_for_change()

    async def close(self) -> None:
        """Say what is to be said, close the sessions, leave the group.

        Cancelling this leaves the rest to the broker: the connections' end closes
        the sessions, the session timeout ends the membership.
        """
        self.metadata.close()
        self._metadata_wakeup.set()
        self._leaders.close()
        while not (self._leaders.all_ended or self._stopped):
            await self._wait_for_change()
        self.abandon()
        self._ack_dispatcher.dispatch()
        self.membership.close(anyio.current_time())
        self._membership_wakeup.set()
        while not (self.membership.finished or self._stopped):
            await self._wait_for_change()

    def on_tasks_ended(self) -> None:
        """Note that the tasks have ended: whoever waits for them stops waiting."""
        self._stopped = True
        self._notify()

    async def release(self) -> None:
        """Close what the tasks leave open."""
        await self._any_broker.aclose()

    def abandon(self) -> None:
        """Nothing may be said of records any more; what was left unsaid failed."""
        self._result_log.closed = True

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions, as far as their topics' names are known."""
        names = self.metadata.names
        return frozenset(
            TopicPartition(names[topic_id], partition)
            for topic_id, partition in self.membership.assignment
            if topic_id in names
        )

    # The tasks.

    async def _run_membership(self) -> None:
        connections: dict[Endpoint, ReconnectingConnection] = {}  # one, or none

        async def send(request: Any) -> Any:
            if isinstance(request, FindCoordinator):
                return await self.ask_any(request)
            self._counters.add("heartbeat-total")
            coordinator = self.membership.coordinator
            assert coordinator is not None, "heartbeats follow a look-up"
            if coordinator not in connections:
                await close_all()
                connections[coordinator] = ReconnectingConnection(
                    partial(self._cluster.connect, coordinator)
                )
            return await connections[coordinator].ask(request, self._request_timeout)

        async def close_all() -> None:
            while connections:
                await connections.popitem()[1].aclose()

        try:
            await drive(
                self.membership,
                send,
                self._membership_wakeup,
                self._on_membership_change,
            )
        finally:
            await close_all()

    async def _run_metadata(self) -> None:
        await drive(
            self.metadata, self.ask_any, self._metadata_wakeup, self._on_metadata_change
        )

    async def _connect_any(self) -> Connection:
        return await self._cluster.connect_any(self.metadata.brokers.values())

    # What the machines tell.

    def _on_membership_change(self) -> None:
        membership = self.membership
        if membership.reported is not None:
            error, membership.reported = membership.reported, None
            self._errors.on_heartbeat_rejected(error, anyio.current_time())
            self._metadata_wakeup.set()
        if membership.fatal_error is not None:
            self._fail(membership.fatal_error)
        if membership.assignment != self._assignment:
            self._on_assigned(membership.assignment)
        self._ack_dispatcher.dispatch()
        self._notify()

    def _on_assigned(self, assignment: frozenset[SharePartition]) -> None:
        self._assignment = assignment
        self._counters.add("rebalance-total")
        if self.membership.state not in (State.LEAVING, State.OUT):
            self._log.info("assigned", partitions=len(assignment))
        self._errors.on_assigned(assignment)
        self._leaders.pauses.keep_only(assignment)
        self.metadata.assigned(assignment, anyio.current_time())
        self._metadata_wakeup.set()
        self._leaders.update()

    def _on_metadata_change(self) -> None:
        topic_errors, self.metadata.topic_errors = self.metadata.topic_errors, []
        self._errors.on_metadata(topic_errors)
        if topic_errors:
            self.membership.forbid(self.metadata.forbidden(), anyio.current_time())
            self._membership_wakeup.set()
        if self.metadata.appeared:
            self.metadata.appeared = False
            self.membership.heartbeat_soon(anyio.current_time())
            self._membership_wakeup.set()
        self._leaders.update()

    def _on_leader_events(self, events: Iterable[LeaderEvent]) -> None:
        for event in events:
            self._on_leader_event(event)
        self._ack_dispatcher.dispatch()
        self._notify()

    def _on_leader_event(self, event: LeaderEvent) -> None:
        match event:
            case Acquired(lease):
                self._listener.on_acquired([lease])
            case LeaderMoved(share_partition, leader):
                now = anyio.current_time()
                self.metadata.leader_moved(share_partition, leader, now)
                self._metadata_wakeup.set()
                self._leaders.update()
            case EndpointsLearned(endpoints):
                self.metadata.endpoints_learned(endpoints)
            case LocksLost():
                self._on_locks_lost(event)
            case MetadataStale(why):
                self._log.info("metadata is stale", reason=why)
                self.metadata.mark_stale(anyio.current_time())
                self._metadata_wakeup.set()
            case PartitionError() | FetchRecovered():
                self._errors.on_fetch_result(event)
            case FatalError(error):
                self._fail(error)
            case Stalled() | UnexpectedResponse() | Throttled():
                self._on_unexpected_response(event)

    def _on_locks_lost(self, lost: LocksLost) -> None:
        self._log.warning("locks lost", reason=lost.why, leases=len(lost.leases))
        self._listener.on_locks_lost(lost.leases)

    def _on_unexpected_response(
        self, event: Stalled | UnexpectedResponse | Throttled
    ) -> None:
        match event:
            case Stalled(node_id):
                self._rejoin(node_id)
            case UnexpectedResponse(what):
                self._log.warning("strange answer", what=what)
            case Throttled(node_id):
                self._log.warning(THROTTLED, node_id=node_id)

    def _rejoin(self, node_id: int) -> None:
        now = anyio.current_time()
        if not self._leaders.has_unsettled_records and self.membership.rejoin(now):
            self._log.warning(STALLED, node_id=node_id)
            self._membership_wakeup.set()
            self._on_membership_change()

    def _fail(self, error: Error) -> None:
        """Nothing can be consumed any more: say so, and ask for nothing."""
        if self._failed:
            return
        self._failed = True
        self._listener.on_fatal_error(error)
        self._leaders.close()
        self.metadata.close()
        self._metadata_wakeup.set()
        self.membership.close(anyio.current_time())
        self._membership_wakeup.set()

    async def _wait_for_change(self) -> None:
        """Wait until something was told; it may be anything."""
        if self._changed is None:
            self._changed = anyio.Event()
            self._ack_dispatcher.is_awaited = True
        await self._changed.wait()

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None
            self._ack_dispatcher.is_awaited = False
