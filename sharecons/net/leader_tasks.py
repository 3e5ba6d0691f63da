"""The partition leaders of a member: a machine, a task and a connection for each.

A leader is started with the first assigned partition that its broker leads. It ends
when the broker leads none and all its records are settled.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from sharecons.errors import BrokerError, Error
from sharecons.metrics.counters import Counters
from sharecons.net.cluster import Cluster, ReconnectingConnection
from sharecons.net.connection import Connection
from sharecons.net.driver import drive
from sharecons.net.io.clock import running_clock
from sharecons.net.io.event import AutoResetEvent
from sharecons.net.io.idle_watch import Wait
from sharecons.net.leader_io import LeaderIO, wake_all
from sharecons.protocol.acknowledge.batcher import AckBatcher, CommitWaiter, ResultLog
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.backoff import spread_of
from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.events import LeaderEvent, LocksLost
from sharecons.protocol.fetch.leader import Leader
from sharecons.protocol.fetch.pauses import FetchPauses
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.group.metadata import Metadata
from sharecons.protocol.messages import FetchSettings

__all__ = ["LeaderTasks"]


class LeaderTasks:
    """Runs the leader machines of one member.

    Args:
        on_acquired: called with leases, if a response has no other events, perhaps
            outside of any task; returns True if a waiting reader ran (`Listener`).
        try_dispatch_acks: dispatches acknowledgement results outside of any task;
            returns False if a task has to.
        on_locks_lost: called when a connection ends between two requests, outside of
            any task.
        on_events: called in a task with all other events of each response, and with
            none when a leader has ended.

    Attributes:
        wake: call this when the prefetch limit changed: there may be records to fetch.
        pauses: partitions with errors, shared by the leaders.
    """

    def __init__(
        self,
        settings: FetchSettings,
        cluster: Cluster,
        metadata: Metadata,
        prefetch: Prefetch,
        result_log: ResultLog,
        counters: Counters,
        on_acquired: Callable[[list[Lease], bool], bool],
        try_dispatch_acks: Callable[[], bool],
        on_locks_lost: Callable[[LocksLost], None],
        on_events: Callable[[Iterable[LeaderEvent]], None],
        *,
        request_timeout: float,
    ) -> None:
        self.pauses = FetchPauses(spread_of(settings.member_id))
        self._settings = settings
        self._cluster = cluster
        self._metadata = metadata
        self._prefetch = prefetch
        self._result_log = result_log
        self._counters = counters
        self._on_acquired = on_acquired
        self._try_dispatch_acks = try_dispatch_acks
        self._on_locks_lost = on_locks_lost
        self._report_events = on_events
        self._request_timeout = request_timeout
        self._tasks: TaskGroup | None = None
        self._closing = False
        self._draining = False
        self._by_node: dict[int, LeaderIO] = {}
        self.wake = partial(wake_all, self._by_node)
        self._running: set[LeaderIO] = set()

    @property
    def all_ended(self) -> bool:
        """True once all leaders have ended."""
        return not self._running

    @property
    def has_unsettled_records(self) -> bool:
        """True while records are neither settled nor lost."""
        return any(leader_io.machine.batcher.leases for leader_io in self._running)

    def start(self, tasks: TaskGroup) -> None:
        """Run leaders in this task group from now on."""
        self._tasks = tasks
        self._clock = running_clock()

    def update(self) -> None:
        """Assign to each leader its partitions; start and end leaders as needed."""
        if self._closing or self._draining or self._tasks is None:
            return
        by_node = self._metadata.leaders()
        for node_id in by_node.keys() - self._by_node.keys():
            self._start(node_id, self._tasks)
        for node_id, leader_io in list(self._by_node.items()):
            leader_io.machine.topic_names = self._metadata.topic_names
            leader_io.machine.leader_count = len(by_node)
            leader_io.machine.set_partitions(by_node.get(node_id, frozenset()))
            self._retire_idle(leader_io)
            leader_io.wakeup.set()

    def flush(self, waiter: CommitWaiter) -> None:
        """Send pending acknowledgements; `waiter` receives their results."""
        for leader_io in self._running:
            leader_io.machine.batcher.collect(waiter)
            leader_io.machine.flush_acks()
            leader_io.wakeup.set()

    def drain(self) -> None:
        """Fetch no more; each leader ends once its records are settled."""
        self._draining = True
        for leader_io in list(self._by_node.values()):
            leader_io.machine.set_partitions(frozenset())
            self._retire_idle(leader_io)
            leader_io.wakeup.set()

    def close(self) -> None:
        """Send pending acknowledgements and close the share sessions."""
        self._closing = True
        for leader_io in self._running:
            leader_io.machine.close()
            leader_io.wakeup.set()

    # One leader.

    def _start(self, node_id: int, tasks: TaskGroup) -> None:
        wakeup = AutoResetEvent()
        batcher = AckBatcher(wakeup.set, self._result_log)
        machine = Leader(node_id, self._settings, self._prefetch, batcher, self.pauses)
        leader_io = LeaderIO(
            machine,
            wakeup,
            self._clock,
            self._counters,
            self._on_acquired,
            self._try_dispatch_acks,
            self._request_timeout,
        )
        self._by_node[node_id] = leader_io
        self._running.add(leader_io)
        tasks.start_soon(self._run, leader_io)

    async def _run(self, leader_io: LeaderIO) -> None:
        connection = ReconnectingConnection(
            partial(self._connect, leader_io.machine.node_id)
        )

        async def send(request: Any) -> None:
            first = leader_io.first_request(request)
            await connection.ask(first.request, first.timeout, leader_io.on_response)
            # `on_response` has passed the response to the machine; return None.

        async def idle(wait: Wait) -> None:
            await connection.idle(wait, partial(self._connection_lost, leader_io))

        on_change = partial(self._handle_events, leader_io)
        try:
            await drive(leader_io.machine, send, leader_io.wakeup, on_change, idle)
        finally:
            await connection.aclose()
            self._running.discard(leader_io)
            self._remove(leader_io)
            self._report_events(())

    async def _connect(self, node_id: int) -> Connection:
        endpoint = self._metadata.brokers.get(node_id)
        if endpoint is None:
            code = Code.BROKER_NOT_AVAILABLE
            text = f"node {node_id} is no longer in the cluster's metadata"
            raise BrokerError(text, code=code, name=code.name)
        return await self._cluster.connect(endpoint)

    def _connection_lost(self, leader_io: LeaderIO, error: Error) -> None:
        """Report lost locks at once, so that no more of the records are delivered.

        Called when the connection ends between two requests. The leader's task handles
        the other events.
        """
        machine = leader_io.machine
        machine.connection_lost(error, self._clock())
        events, machine.events = machine.events, []
        for event in events:
            if isinstance(event, LocksLost):
                self._on_locks_lost(event)
            else:
                machine.events.append(event)
        leader_io.wakeup.set()

    def _handle_events(self, leader_io: LeaderIO) -> None:
        events, leader_io.machine.events = leader_io.machine.events, []
        self._report_events(events)
        if not self._closing:
            self._retire_idle(leader_io)

    def _retire_idle(self, leader_io: LeaderIO) -> None:
        if not leader_io.machine.partitions and leader_io.machine.is_idle(
            anyio.current_time()
        ):
            self._remove(leader_io)
            leader_io.machine.close()
            leader_io.wakeup.set()

    def _remove(self, leader_io: LeaderIO) -> None:
        if self._by_node.get(leader_io.machine.node_id) is leader_io:
            del self._by_node[leader_io.machine.node_id]
