"""One member of a share group: runs its state machines and connects them.

Each machine has a task and a connection of its own: the membership (heartbeats to the
group coordinator), the metadata (from any broker), and one leader machine for each
broker that leads assigned partitions. `MemberTasks` passes their events to each other,
and those for the application to its buffer.
"""

from collections.abc import Callable, Iterable
from threading import get_ident
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup

from sharecons._record import TopicPartition
from sharecons.errors import ClosedError, Error
from sharecons.instrumentation import MemberObserver
from sharecons.log import get_logger
from sharecons.member.ack_dispatcher import AckDispatcher
from sharecons.member.coordinator_connection import CoordinatorConnection
from sharecons.member.drive import drive
from sharecons.member.error_reports import ErrorReports
from sharecons.member.leader_tasks import LeaderTasks
from sharecons.member.lease_buffer import LeaseBuffer
from sharecons.member.member_log import STALLED, MemberLog
from sharecons.member.settings import MemberSettings
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.connection import Connection, SharedConnection
from sharecons.net.io.event_loop import (
    FOREVER,
    AutoResetEvent,
    ChangeEvent,
    running_clock,
)
from sharecons.protocol.acknowledge.commit_waiter import CommitWaiter
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult, ResultLog
from sharecons.protocol.acknowledge.results import join_results
from sharecons.protocol.backoff import spread_of
from sharecons.protocol.fetch.demand import FetchDemand
from sharecons.protocol.fetch.events import (
    EndpointsLearned,
    FatalError,
    FetchRecovered,
    LeaderEvent,
    LeaderMoved,
    LocksLost,
    MetadataStale,
    PartitionError,
    Stalled,
    lost_count,
)
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.fetch.retried_errors import FetchRejected
from sharecons.protocol.group.heartbeat import Membership
from sharecons.protocol.group.messages import FindCoordinator
from sharecons.protocol.group.metadata import Metadata
from sharecons.protocol.group.states import State
from sharecons.protocol.partitions import SharePartition
from sharecons.wire.consumer_apis import serves_telemetry

if TYPE_CHECKING:  # loaded only if brokers collect metrics
    from sharecons.member.telemetry import Send, Telemetry

__all__ = ["MemberTasks"]


class MemberTasks:
    """Runs the machines of one member in a task group of the caller.

    Attributes:
        membership, metadata: the machines; the consumer reads their state.
        demand: how many records are wanted.
        telemetry: pushes metrics, if brokers collect them and it is enabled.
        result_log: results of acknowledgements, and what an error of a record advises.
        settling: the scope in which `close` waits for the leaders.
        leave_timeout: seconds for which `close` waits for the group coordinator.
        problems: logs problems with the cluster.
    """

    def __init__(
        self,
        settings: MemberSettings,
        buffer: LeaseBuffer,
        recorder: MetricsRecorder,
        create_telemetry: "Callable[[Send], Telemetry | None]",
        *,
        observer: MemberObserver | None = None,
    ) -> None:
        fetch, cluster = settings.fetch, settings.cluster
        group_id, member_id = fetch.group_id, fetch.member_id
        self.membership = Membership(group_id, member_id, rack=settings.client_rack)
        self.metadata = Metadata(spread_of(member_id))
        prefetch = Prefetch(fetch.max_records, fetch.max_bytes)
        self._group_id = group_id
        self._cluster = cluster
        self._buffer = buffer
        self._recorder = recorder
        self._request_timeout = settings.request_timeout
        self._membership_wakeup = AutoResetEvent()
        self._metadata_wakeup = AutoResetEvent()
        self._changed = ChangeEvent()  # of any machine
        wake_up = self._membership_wakeup.set
        self.result_log = ResultLog(wake_up, running_clock(), get_ident)
        self._ack_dispatcher = AckDispatcher(
            self.result_log, recorder, buffer, log_fields=fetch.log_fields
        )
        self._leaders = LeaderTasks(
            fetch,
            cluster,
            self.metadata,
            prefetch,
            self.result_log,
            recorder,
            self._ack_dispatcher,
            buffer.on_acquired,
            self._on_locks_lost,
            self._on_leader_events,
            self._changed.set,
            request_timeout=settings.request_timeout,
            observer=observer,
        )
        wake = self._leaders.wake
        self.demand = FetchDemand(prefetch, fetch.max_records, wake)
        self.leave_timeout = FOREVER
        self.settling = anyio.CancelScope()
        recorder.held_records = self._leaders.held_records
        self._failed = self._stopped = False
        self._assignment: frozenset[SharePartition] = frozenset()
        self._create_telemetry = create_telemetry
        self.telemetry: Telemetry | None = None
        self._log = get_logger(__name__, **fetch.log_fields)
        self._errors = ErrorReports(self.metadata, buffer.on_error, wake, self._log)
        self.problems = MemberLog(self._log, running_clock(), self)
        self.problems.add(self._errors.topics)
        cluster.outages = self.problems.outages
        self._any_broker = SharedConnection(
            lambda: cluster.connect_any(self.metadata.brokers.values()),
            lambda broker: cluster.should_avoid(broker, self.metadata.brokers.values()),
        )
        recorder.problems = self.problems.lasting

    # Called by the consumer.

    def use_connection(self, connection: Connection) -> None:
        """Use this connection for requests that any broker can serve."""
        connection.watch(self.problems.outages)
        self._any_broker.use(connection)
        if serves_telemetry(connection.served):
            self.telemetry = self._create_telemetry(self._any_broker.send)

    def start(self, tasks: TaskGroup) -> None:
        """Start the machines in this task group."""
        self._leaders.start(tasks)
        tasks.start_soon(self._run_membership)
        tasks.start_soon(self._run_metadata)
        tasks.start_soon(self.problems.run)
        self._buffer.configs.start(tasks, self.send_to_any)
        if self.telemetry is not None:
            self.telemetry.start(tasks)

    async def send_to_any(self, request: Any) -> Any:
        """Send a request to any broker; raises as `SharedConnection.send`."""
        return await self._any_broker.send(request, self._request_timeout)

    def subscribe(self, topics: tuple[str, ...]) -> None:
        now = anyio.current_time()
        self.membership.subscribe(topics, now)
        self.metadata.set_subscription(topics, now)
        self._errors.on_subscribed(now)
        self._membership_wakeup.set()
        self._metadata_wakeup.set()
        self._leaders.update()
        self._on_membership_change()

    def set_paused(self, topics: frozenset[str]) -> None:
        """Fetch nothing from these topics of the subscription."""
        self._leaders.set_paused(topics)

    def leave_out(self, topics: frozenset[str]) -> None:
        """Leave these topics out of the next fetches."""
        self._leaders.leave_out(topics)

    async def commit(self) -> list[AcknowledgeResult]:
        """Send pending acknowledgements and return one result per offset range.

        Cancelling this ends the wait only; the requests continue.

        Raises:
            ClosedError: the tasks ended before all results arrived.
        """
        waiter = CommitWaiter()
        self._leaders.flush(waiter)
        while not waiter.is_done:
            if self._stopped:
                raise ClosedError(
                    f"the consumer of group {self._group_id!r} was closed "
                    "before the results of commit() arrived; records without a "
                    "successful acknowledgement are delivered again"
                )
            await self._changed.wait()
        return join_results(waiter.results)

    async def drain(self, timeout: float, on_fetched: Callable[[], None]) -> None:
        """Fetch no more; wait until all records are settled and acknowledged.

        The application must settle records that fetches in flight return, for up to
        `timeout` seconds if no others are unsettled. `on_fetched` is called once no
        fetch is in flight. Call `close` next.
        """
        self._leaders.drain(timeout, on_fetched)
        while not self._stopped and (left := self._leaders.drain_time_left()) > 0:
            with anyio.move_on_after(left):
                await self._changed.wait()

    async def close(self) -> None:
        """Send pending acknowledgements, close the share sessions, leave the group.

        In this order: a leave releases nothing, and the locks would go on for 30 s.
        """
        self.metadata.close()
        self._metadata_wakeup.set()
        self._leaders.close()
        with self.settling:
            while not (self._leaders.all_ended or self._stopped):
                await self._changed.wait()
        self.abandon()
        await self._ack_dispatcher.end()
        self.membership.close(anyio.current_time())
        self._membership_wakeup.set()
        with anyio.move_on_after(self.leave_timeout):
            while not (self.membership.finished or self._stopped):
                await self._changed.wait()
            # After the leave, so that it counts all heartbeats.
            if self.telemetry is not None:
                await self.telemetry.close()

    def on_tasks_ended(self) -> None:
        """Wake the calls that wait for the tasks, which have ended."""
        self._stopped = True
        self._changed.set()

    async def release(self) -> None:
        """Close the connection that outlives the tasks."""
        await self._any_broker.aclose()

    def flush(self) -> bool:
        """Send pending acknowledgements; return whether records are unsettled."""
        waiter = CommitWaiter()
        self._leaders.flush(waiter)
        return not waiter.is_done or self._leaders.has_unsettled_records

    def check_readable(self, topics: tuple[str, ...]) -> None:
        """Raise the error of a topic or partition that cannot be read now, if any."""
        self._errors.check_readable(topics, self._leaders.pauses.codes)

    def abandon(self) -> None:
        """Reject acknowledgements from now on; those not sent have failed."""
        self.result_log.closed = True

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions whose topic names are known."""
        return self.metadata.name_partitions(self.membership.assignment)

    async def wait_for_starts(self, check: Callable[[], bool]) -> None:
        """Wait until start offsets are fixed and `check` returns true, or raises."""
        while not check() or not self._leaders.have_started(self._assignment):
            await self._changed.wait()

    # The tasks.

    async def _run_membership(self) -> None:
        coordinator = CoordinatorConnection(
            self._cluster, self.membership, self._recorder, self._request_timeout
        )

        async def send(request: Any) -> Any:
            if isinstance(request, FindCoordinator):
                response = await self.send_to_any(request)
            else:
                response = await coordinator.send(request)
            self.problems.on_coordinator_response(request, response)
            return response

        try:
            await drive(
                self.membership,
                send,
                self._membership_wakeup,
                self._on_membership_change,
            )
        finally:
            self.problems.end()
            await coordinator.aclose()

    async def _run_metadata(self) -> None:
        wakeup, on_change = self._metadata_wakeup, self._on_metadata_change
        await drive(self.metadata, self.send_to_any, wakeup, on_change)

    # Events of the machines.

    def _on_membership_change(self) -> None:
        membership = self.membership
        if membership.error_to_report is not None:
            error, membership.error_to_report = membership.error_to_report, None
            self._errors.on_heartbeat_rejected(error, anyio.current_time())
            self._metadata_wakeup.set()
        if membership.fatal_error is not None:
            self._fail(membership.fatal_error)
        if membership.assignment != self._assignment:
            self._on_assigned(membership.assignment)
        self._ack_dispatcher.dispatch()
        self._changed.set()

    def _on_assigned(self, assignment: frozenset[SharePartition]) -> None:
        added, removed = assignment - self._assignment, self._assignment - assignment
        self._assignment = assignment
        if self.membership.state not in (State.LEAVING, State.OUT):
            self._log.info(
                "assigned",
                partitions=len(assignment),
                added=len(added),
                removed=len(removed),
            )
        self._errors.on_assigned(assignment)
        self._leaders.pauses.keep_only(assignment)
        self.metadata.set_assignment(assignment, anyio.current_time())
        self._metadata_wakeup.set()
        self._leaders.update()

    def _on_metadata_change(self) -> None:
        self._cluster.cluster_id = self.metadata.cluster_id
        topic_errors, self.metadata.topic_errors = self.metadata.topic_errors, []
        self._errors.on_metadata(topic_errors, anyio.current_time())
        self.problems.on_metadata()
        if topic_errors:
            unauthorized = self.metadata.unauthorized_topics()
            self.membership.exclude_topics(unauthorized, anyio.current_time())
            self._membership_wakeup.set()
        if self.metadata.has_new_topics:
            self.metadata.has_new_topics = False
            self.membership.heartbeat_soon(anyio.current_time())
            self._membership_wakeup.set()
        self._leaders.update()

    def _on_leader_events(self, events: Iterable[LeaderEvent]) -> None:
        for event in events:
            self.problems.on_event(event)
            self._on_leader_event(event)

    def _on_leader_event(self, event: LeaderEvent) -> None:
        match event:
            case LeaderMoved(share_partition, leader):
                now = anyio.current_time()
                self.metadata.on_leader_moved(share_partition, leader, now)
                self._metadata_wakeup.set()
                self._leaders.update()
            case EndpointsLearned(endpoints):
                self.metadata.update_endpoints(endpoints)
            case LocksLost():
                self._on_locks_lost(event)
            case MetadataStale() | FetchRejected():
                self.metadata.mark_stale(anyio.current_time())
                self._metadata_wakeup.set()
            case PartitionError() | FetchRecovered():
                self._errors.on_fetch_result(event)
            case FatalError(error):
                self._fail(error)
            case Stalled(node_id):
                self._rejoin(node_id)

    def _on_locks_lost(self, lost: LocksLost) -> None:
        self._recorder.locks_lost += lost_count(lost)
        # The line of a worker has the handlers that it cancels as well.
        if not self._buffer.on_locks_lost(lost.leases):
            self.problems.on_locks_lost(lost)

    def _rejoin(self, node_id: int) -> None:
        now = anyio.current_time()
        if not self._leaders.has_unsettled_records and self.membership.rejoin(now):
            self._log.warning(STALLED, node_id=node_id)
            self._membership_wakeup.set()
            self._on_membership_change()

    def _fail(self, error: Error) -> None:
        """Report a fatal error, and stop fetching and heartbeats."""
        if self._failed:
            return
        self._failed = True
        self._buffer.on_fatal_error(error)
        self._leaders.close()
        self.metadata.close()
        self._metadata_wakeup.set()
        self.membership.close(anyio.current_time())
        self._membership_wakeup.set()
