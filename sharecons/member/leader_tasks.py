"""Running the machines of partition leaders: each has a task and a connection.

A leader is started with the first assigned partition that its broker leads. It ends
when the broker leads none and all its records are settled.
"""

from collections.abc import Callable
from functools import partial
from typing import final

import anyio
from anyio.abc import TaskGroup

from sharecons.errors import BrokerError, Error
from sharecons.instrumentation import MemberObserver
from sharecons.member.ack_dispatcher import AckDispatcher
from sharecons.member.drive import drive
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.cluster import Cluster
from sharecons.net.connection import Connection, ReconnectingConnection
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent, running_clock
from sharecons.net.io.idle_watch import Wait
from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.commit_waiter import CommitWaiter
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import ResultLog
from sharecons.protocol.backoff import spread_of
from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.events import Acquired, LeaderEvent, LocksLost
from sharecons.protocol.fetch.fetch_pauses import FetchPauses
from sharecons.protocol.fetch.leader import Leader, Request, Response
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.fetch.settings import FetchSettings
from sharecons.protocol.group.metadata import Metadata
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import ShareFetch, ShareFetchResponse

__all__ = ["LeaderTasks"]


@final
class LeaderTask:
    """One leader's machine, and the event that wakes the task that drives it.

    Attributes:
        is_fetching: a fetch is in flight, which can return records.
    """

    def __init__(self, machine: Leader, wakeup: AutoResetEvent) -> None:
        self.machine = machine
        self.wakeup = wakeup
        self.is_fetching = False


class LeaderTasks:
    """Runs the leader machines of one member.

    Args:
        recorder: counts requests and what they bring.
        dispatcher: passes on the results of acknowledgements.
        on_acquired: called with the leases of each response.
        on_locks_lost: called when a connection ends between two requests, outside of
            any task.
        on_events: called with all other events.
        on_change: called after other events, after acknowledgement results, and when a
            leader has ended.
        observer: observes the requests that acknowledge records.

    Attributes:
        pauses: partitions with errors, shared by the leaders.
    """

    def __init__(
        self,
        settings: FetchSettings,
        cluster: Cluster,
        metadata: Metadata,
        prefetch: Prefetch,
        result_log: ResultLog,
        recorder: MetricsRecorder,
        dispatcher: AckDispatcher,
        on_acquired: Callable[[list[Lease]], None],
        on_locks_lost: Callable[[LocksLost], None],
        on_events: Callable[[list[LeaderEvent]], None],
        on_change: Callable[[], None],
        *,
        request_timeout: float,
        observer: MemberObserver | None = None,
    ) -> None:
        self.pauses = FetchPauses(spread_of(settings.member_id))
        self._settings = settings
        self._cluster = cluster
        self._metadata = metadata
        self._prefetch = prefetch
        self._result_log = result_log
        self._recorder = recorder
        self._dispatcher = dispatcher
        self._on_acquired = on_acquired
        self._on_locks_lost = on_locks_lost
        self._on_events = on_events
        self._on_change = on_change
        self._request_timeout = request_timeout
        self._observer = observer
        self._tasks: TaskGroup | None = None
        self._closing = False
        self._draining = False
        self._response_timeout = self._drain_end = FOREVER
        self._left_out: frozenset[str] = frozenset()
        self._paused: frozenset[str] = frozenset()
        self._by_node: dict[int, LeaderTask] = {}
        self._running: set[LeaderTask] = set()

    @property
    def all_ended(self) -> bool:
        """True once all leaders have ended."""
        return not self._running

    @property
    def has_unsettled_records(self) -> bool:
        """True while records are neither settled nor lost."""
        return any(leader.machine.batcher.leases for leader in self._running)

    def have_started(self, assignment: frozenset[SharePartition]) -> bool:
        """Return whether the group's start offsets in these partitions are fixed."""
        leaders = self._by_node.values()
        return assignment <= frozenset().union(
            *(leader.machine.fixed_starts for leader in leaders)
        )

    def held_records(self) -> int:
        """Return how many records are locked for this member; safe in any thread."""
        now = self._result_log.clock()
        return sum(
            lease.held_count
            for leader in tuple(self._running)
            for lease in leader.machine.batcher.leases
            if lease.locks.last() > now
        )

    def wake(self) -> None:
        """Wake all leaders: the demand changed, so a fetch might be due."""
        for leader in self._by_node.values():
            leader.wakeup.set()

    def start(self, tasks: TaskGroup) -> None:
        """Run leaders in this task group from now on."""
        self._tasks = tasks
        self._clock = running_clock()

    def update(self) -> None:
        """Assign to each leader its partitions; start and end leaders as needed."""
        if self._closing or self._draining or self._tasks is None:
            return
        self._apply_left_out()
        by_node = self._metadata.leaders()
        for node_id in by_node.keys() - self._by_node.keys():
            self._start(node_id, self._tasks)
        for node_id, leader in list(self._by_node.items()):
            leader.machine.topic_names = self._metadata.topic_names
            leader.machine.leader_count = len(by_node)
            leader.machine.set_partitions(by_node.get(node_id, frozenset()))
            self._retire_idle(leader)
            leader.wakeup.set()

    def set_paused(self, topics: frozenset[str]) -> None:
        """Fetch nothing from these topics.

        Leaders that have no other partitions keep their connections. A broker forgets
        where a group starts that has acknowledged nothing, if its last one ends.
        """
        self._paused = topics
        self._apply_left_out()
        self.wake()

    def leave_out(self, topics: frozenset[str]) -> None:
        """Leave these topics out of the next fetches."""
        self._left_out = topics
        self._apply_left_out()
        self.wake()

    def _apply_left_out(self) -> None:
        names, left_out = self._metadata.topic_names, self._left_out | self._paused
        self.pauses.leave_out(
            {each for each, name in names.items() if name in left_out}
        )

    def flush(self, waiter: CommitWaiter) -> None:
        """Send pending acknowledgements; `waiter` receives their results."""
        for leader in self._running:
            leader.machine.batcher.collect(waiter)
            leader.machine.flush_acks()
            leader.wakeup.set()

    def drain(self, response_timeout: float, on_fetched: Callable[[], None]) -> None:
        """Fetch no more; each leader ends once its records are settled.

        Once none is unsettled, leaders have `response_timeout` seconds
        (`drain_time_left`). `on_fetched` is called once no fetch is in flight.
        """
        self._draining = True
        self._response_timeout = response_timeout
        self._on_fetched = on_fetched
        # Closing the sessions would release records in handlers; without partitions
        # leaders only send acknowledgements.
        for leader in list(self._by_node.values()):
            leader.machine.set_partitions(frozenset())
            self._retire_idle(leader)
            leader.wakeup.set()
        self._check_fetched()

    def _check_fetched(self) -> None:
        if self._draining and not any(each.is_fetching for each in self._running):
            self._on_fetched()

    def drain_time_left(self) -> float:
        """Return the seconds left for responses; FOREVER while records are unsettled.

        Call this repeatedly while draining. It is 0 once all leaders have ended.
        """
        if self.all_ended:
            return 0.0
        now = anyio.current_time()
        if self.has_unsettled_records:
            self._drain_end = FOREVER
        else:
            self._drain_end = min(self._drain_end, now + self._response_timeout)
        return self._drain_end - now

    def close(self) -> None:
        """Send pending acknowledgements and close the share sessions."""
        self._closing = True
        for leader in self._running:
            leader.machine.close()
            leader.wakeup.set()

    # One leader.

    def _start(self, node_id: int, tasks: TaskGroup) -> None:
        wakeup = AutoResetEvent()
        batcher = AckBatcher(wakeup.set, self._result_log)
        machine = Leader(node_id, self._settings, self._prefetch, batcher, self.pauses)
        leader = LeaderTask(machine, wakeup)
        self._by_node[node_id] = leader
        self._running.add(leader)
        tasks.start_soon(self._run, leader)

    async def _run(self, leader: LeaderTask) -> None:
        machine = leader.machine
        recorder = self._recorder
        connection = ReconnectingConnection(partial(self._connect, machine.node_id))

        async def send(request: Request) -> Response:
            timeout = self._request_timeout
            if isinstance(request, ShareFetch):
                # A broker without records responds only after this time.
                timeout += request.max_wait
                leader.is_fetching = True
            if not connection.is_open:
                await connection.open()
            sent_at = self._clock()
            recorder.on_acknowledgements_sent(request.acknowledgements, sent_at)
            response = await self._send(machine, connection, request, timeout)
            now = self._clock()
            recorder.on_acknowledge_response(request.acknowledgements, sent_at, now)
            if isinstance(response, ShareFetchResponse):
                recorder.on_fetched(response, sent_at, now)
            return response

        async def idle(wait: Wait) -> None:
            await connection.idle(wait, partial(self._connection_lost, leader))

        on_change = partial(self._handle_events, leader)
        try:
            await drive(machine, send, leader.wakeup, on_change, idle)
        finally:
            await connection.aclose()
            self._running.discard(leader)
            self._remove(leader)
            self._check_fetched()
            self._dispatcher.dispatch()
            self._on_change()

    async def _send(
        self,
        machine: Leader,
        connection: ReconnectingConnection,
        request: Request,
        timeout: float,
    ) -> Response:
        response: Response
        if self._observer is None or not request.acknowledgements:
            response = await connection.send(request, timeout)
            return response
        with self._observer.settling(
            machine.topic_names, request.acknowledgements
        ) as settle:
            settle.response = response = await connection.send(request, timeout)
        return response

    async def _connect(self, node_id: int) -> Connection:
        endpoint = self._metadata.brokers.get(node_id)
        if endpoint is None:
            code = Code.BROKER_NOT_AVAILABLE
            text = f"node {node_id} is no longer in the cluster's metadata"
            raise BrokerError(text, code=code, name=code.name)
        return await self._cluster.connect(endpoint)

    def _connection_lost(self, leader: LeaderTask, error: Error) -> None:
        """Report lost locks immediately: none of the records is delivered any more.

        Called when the connection ends between two requests. The leader's task handles
        the other events.
        """
        machine = leader.machine
        machine.connection_lost(error, self._clock())
        events, machine.events = machine.events, []
        for event in events:
            if isinstance(event, LocksLost):
                self._on_locks_lost(event)
            else:
                machine.events.append(event)
        leader.wakeup.set()

    def _handle_events(self, leader: LeaderTask) -> None:
        # This runs twice per request: nothing is called without a reason.
        machine = leader.machine
        changed = bool(machine.events) and self._pass_on_events(machine)
        if self._result_log.is_filled:
            changed |= self._dispatcher.dispatch()
        if changed:
            self._on_change()
        if leader.is_fetching:  # set after the last call, so the response has arrived
            leader.is_fetching = False
            self._check_fetched()
        if not machine.partitions and not self._closing:
            self._retire_idle(leader)

    def _pass_on_events(self, machine: Leader) -> bool:
        """Pass on the leader's events; return whether any is not a lease."""
        events, machine.events = machine.events, []
        leases: list[Lease] = []
        others: list[LeaderEvent] = []
        for event in events:
            if not isinstance(event, Acquired):
                others.append(event)
            elif self._has_moved(machine, event.lease):
                # The new leader delivers the records, unless this one is it again.
                event.lease.give_back()
                self._prefetch.on_dropped(event.lease.count)
            else:
                leases.append(event.lease)
        if leases:
            self._on_acquired(leases)
        if others:
            self._on_events(others)
        return bool(others)

    def _has_moved(self, machine: Leader, lease: Lease) -> bool:
        """Return whether another broker is the leader of a lease's partition.

        A broker that was paused takes itself for the leader until it learns more.
        """
        partition = lease.share_partition
        return partition not in machine.partitions and self._metadata.has_moved(
            partition, machine.node_id
        )

    def _retire_idle(self, leader: LeaderTask) -> None:
        if not leader.machine.partitions and leader.machine.is_idle(
            anyio.current_time()
        ):
            self._remove(leader)
            leader.machine.close()
            leader.wakeup.set()

    def _remove(self, leader: LeaderTask) -> None:
        if self._by_node.get(leader.machine.node_id) is leader:
            del self._by_node[leader.machine.node_id]
