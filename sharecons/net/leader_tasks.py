"""The leaders of our partitions: a machine, a task and a connection for each.

They come with the first partition that a broker leads for us, and go when it leads
none and nothing is left to say of what came from it.
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
    """Runs one member's leader machines.

    `told` is called with what a leader's answers brought, after each of them, and
    when a leader is gone, in a task. Where nothing came but leases and what became of
    acknowledgements, `acquired` takes those and `reported` sees to these instead: they
    may be called outside of any task. `reported` is False if that is for a task;
    `acquired` is True if whom it let go on at once has run (`Listener` tells more).
    `locks_lost` is called when a connection ended between two requests, outside of any
    task as well.

    Attributes:
        wake: to be called when the pace changed; there may be something to fetch.
        pauses: partitions with errors, shared by the leaders.
    """

    def __init__(
        self,
        settings: FetchSettings,
        cluster: Cluster,
        routing: Metadata,
        pace: Prefetch,
        journal: ResultLog,
        counters: Counters,
        acquired: Callable[[list[Lease], bool], bool],
        reported: Callable[[], bool],
        locks_lost: Callable[[LocksLost], None],
        told: Callable[[Iterable[LeaderEvent]], None],
        *,
        request_timeout: float,
    ) -> None:
        self.pauses = FetchPauses(spread_of(settings.member_id))
        self._settings = settings
        self._cluster = cluster
        self._routing = routing
        self._prefetch = pace
        self._journal = journal
        self._counters = counters
        self._acquired = acquired
        self._reported = reported
        self._locks_lost = locks_lost
        self._told = told
        self._request_timeout = request_timeout
        self._tasks: TaskGroup | None = None
        self._closing = False
        self._draining = False
        self._by_node: dict[int, LeaderIO] = {}
        self.wake = partial(wake_all, self._by_node)
        self._running: set[LeaderIO] = set()

    @property
    def all_ended(self) -> bool:
        """True once every one of them has ended."""
        return not self._running

    @property
    def holds_records(self) -> bool:
        """True while records of any leader are neither settled nor lost."""
        return any(led.machine.batcher.held for led in self._running)

    def start(self, tasks: TaskGroup) -> None:
        """Run in these tasks from now on."""
        self._tasks = tasks
        self._clock = running_clock()

    def update(self) -> None:
        """See that each leader fetches what it leads of the assignment."""
        if self._closing or self._draining or self._tasks is None:
            return
        by_node = self._routing.leaders()
        for node_id in by_node.keys() - self._by_node.keys():
            self._start(node_id, self._tasks)
        for node_id, led in list(self._by_node.items()):
            led.machine.topics = self._routing.names
            led.machine.leaders = len(by_node)
            led.machine.set_partitions(by_node.get(node_id, frozenset()))
            self._retire_idle(led)
            led.wakeup.set()

    def flush(self, ticket: CommitWaiter) -> None:
        """Send what was marked, soon; the ticket waits for it."""
        for led in self._running:
            led.machine.batcher.freeze(ticket)
            led.machine.flush_acks()
            led.wakeup.set()

    def drain(self) -> None:
        """Fetch no more; each goes when nothing is held of what came from it."""
        self._draining = True
        for led in list(self._by_node.values()):
            led.machine.set_partitions(frozenset())
            self._retire_idle(led)
            led.wakeup.set()

    def close(self) -> None:
        """Say what is to be said, and close the sessions."""
        self._closing = True
        for led in self._running:
            led.machine.close()
            led.wakeup.set()

    # One leader.

    def _start(self, node_id: int, tasks: TaskGroup) -> None:
        bell = AutoResetEvent()
        acknowledgements = AckBatcher(bell.set, self._journal)
        machine = Leader(
            node_id, self._settings, self._prefetch, acknowledgements, self.pauses
        )
        led = LeaderIO(
            machine,
            bell,
            self._clock,
            self._counters,
            self._acquired,
            self._reported,
            self._request_timeout,
        )
        self._by_node[node_id] = led
        self._running.add(led)
        tasks.start_soon(self._run, led)

    async def _run(self, led: LeaderIO) -> None:
        link = ReconnectingConnection(partial(self._connect, led.machine.node_id))

        async def send(request: Any) -> None:
            first = led.next_request(request)
            await link.ask(first.request, first.timeout, led.on_response)
            # The machine knows.

        async def idle(wait: Wait) -> None:
            await link.idle(wait, partial(self._connection_lost, led))

        told = partial(self._on_events, led)
        try:
            await drive(led.machine, send, led.wakeup, told, idle)
        finally:
            await link.aclose()
            self._running.discard(led)
            self._forget(led)
            self._told(())

    async def _connect(self, node_id: int) -> Connection:
        endpoint = self._routing.brokers.get(node_id)
        if endpoint is None:
            code = Code.BROKER_NOT_AVAILABLE
            text = f"node {node_id} is no longer in the cluster's metadata"
            raise BrokerError(text, code=code, name=code.name)
        return await self._cluster.connect(endpoint)

    def _connection_lost(self, led: LeaderIO, error: Error) -> None:
        """It ended between two requests: hand out no more of its records, from now on.

        The rest is for the leader's task.
        """
        machine = led.machine
        machine.connection_lost(error, self._clock())
        happened, machine.events = machine.events, []
        for each in happened:
            if isinstance(each, LocksLost):
                self._locks_lost(each)
            else:
                machine.events.append(each)
        led.wakeup.set()

    def _on_events(self, led: LeaderIO) -> None:
        happened, led.machine.events = led.machine.events, []
        self._told(happened)
        if not self._closing:
            self._retire_idle(led)

    def _retire_idle(self, led: LeaderIO) -> None:
        if not led.machine.wanted and led.machine.is_idle(anyio.current_time()):
            self._forget(led)
            led.machine.close()
            led.wakeup.set()

    def _forget(self, led: LeaderIO) -> None:
        if self._by_node.get(led.machine.node_id) is led:
            del self._by_node[led.machine.node_id]
