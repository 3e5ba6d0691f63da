"""`RecordSource` in memory; its waits take no time in tests with a `virtual_clock`."""

from collections.abc import Callable, Iterable
from threading import get_ident
from typing import Any, Literal
from uuid import UUID

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from sharecons import Record
from sharecons.errors import (
    AuthorizationError,
    ClosedError,
    ConsumerStateError,
    Error,
    fresh,
)
from sharecons.member.source_options import SourceOptions
from sharecons.metrics.application_metrics import ApplicationMetrics
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.background import Background
from sharecons.net.io.event_loop import (
    FOREVER,
    AutoResetEvent,
    LoopGuard,
    running_clock,
)
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.lock_scope import LockScope
from sharecons.protocol.acknowledge.lock_times import LockTimes
from sharecons.protocol.acknowledge.result_log import (
    AcknowledgeFailure,
    AcknowledgeResult,
    ResultLog,
)
from sharecons.protocol.acknowledge.runs import Run
from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.demand import FetchDemand
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.partitions import SharePartition
from sharecons.record import (
    ACCEPT,
    RELEASE,
    RENEW,
    AcknowledgeType,
    TimestampType,
    TopicPartition,
)
from tests.worker.memory import LATENCY, Delivery, MemoryBroker, MemoryConfigs

__all__ = ["MemorySource"]

CONFIG_INTERVAL = 60
"""Seconds between two readings of the rules of the group."""

FAILURE = AcknowledgeFailure(Code.INVALID_RECORD_STATE, "INVALID_RECORD_STATE", "lost")


class MemorySource:
    """One member; the owner of its leases, each of which has one record.

    One task passes fetches and acknowledgements to the broker. It decides nothing.
    """

    renewable = True
    servers = "memory"
    missing_topics: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()
    result_log: ResultLog
    demand: FetchDemand
    configs: MemoryConfigs

    def __init__(self, broker: MemoryBroker, options: SourceOptions) -> None:
        self.state: Literal["new", "starting", "open", "closing", "closed"] = "new"
        self.recorder = MetricsRecorder()
        self.application_metrics = ApplicationMetrics()
        self.observer = options.settings.new_observer()
        self.topics = options.topics
        self.paused: frozenset[str] = frozenset()
        self.settling_deadline = FOREVER
        self.response_timeout = LATENCY
        self.max_records = options.settings.fetch.max_records
        self.group_id = options.settings.fetch.group_id
        self.member_id = options.settings.fetch.member_id
        self.fatal_error: Error | None = None
        self._views = options.settings.has_views
        self._broker = broker
        self._options = options
        self._left_out: frozenset[str] = frozenset()
        self._is_draining = False
        self._leases: dict[Lease, Delivery] = {}  # until they are settled, or lost
        self._queued: list[Lease] = []
        self._ready: list[Record[Any, Any]] = []
        self._wakeup = AutoResetEvent()
        self._changed = AutoResetEvent()

    # Its state.

    @property
    def is_connected(self) -> bool:
        return self.state == "open" and not self.has_failed

    @property
    def seconds_since_heartbeat(self) -> float | None:
        return 0.0 if self.is_connected else None

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        topics = self.topics if self.state == "open" else ()
        return frozenset(TopicPartition(topic, 0) for topic in topics)

    async def assigned(self) -> frozenset[TopicPartition]:
        await checkpoint()
        return self.assignment

    async def client_instance_id(self, timeout: float) -> UUID | None:
        return None

    def check_caller(self) -> None:
        self._guard.check()

    @property
    def has_failed(self) -> bool:
        return self.fatal_error is not None

    @property
    def lock_duration(self) -> float | None:
        return self.demand.lock_duration or None

    # The start.

    def subscribe(self, topics: tuple[str, ...]) -> None:
        assert self.state == "new", "a worker's topics are known before its start"
        self.topics = topics

    def set_member_id(self, name: str) -> None:
        self.member_id = name

    async def start(self) -> None:
        if self.state != "new":
            raise ConsumerStateError("started before")
        self.state = "starting"
        await checkpoint()
        self._guard = LoopGuard("worker")
        self._clock = running_clock()
        self._scope = LockScope()
        self._prefetch = Prefetch(self.max_records)
        self.demand = FetchDemand(self._prefetch, self.max_records, self._wakeup.set)
        self.configs = MemoryConfigs(self._broker)
        self.result_log = ResultLog(self._wakeup.set, self._clock, get_ident)
        self.result_log.is_guarded = self._options.is_guarded
        self._broker.on_change.append(self._wakeup.set)
        self._background = Background(
            "memory", self._start_tasks, lambda error: None, checkpoint
        )
        self.state = "open"

    def _start_tasks(self, tasks: TaskGroup) -> None:
        tasks.start_soon(self._exchange)
        tasks.start_soon(self._heartbeat)

    # Taking.

    async def take(self, max_records: int, *, timeout: float) -> list[Any]:
        deadline = self._clock() + timeout
        await checkpoint()
        while True:
            if self.state != "open":
                raise ClosedError("the source is closed")
            if self.fatal_error is not None:
                raise fresh(self.fatal_error)
            if records := self._take_ready(max_records):
                return records
            if self._clock() >= deadline:
                return []
            self.demand.begin_wait(self._clock())
            try:
                await self._changed.wait_until(deadline)
            finally:
                self.demand.end_wait()

    def _take_ready(self, max_records: int) -> list[Record[Any, Any]]:
        self.drop_lost()
        records = [each for each in self._ready if each.topic not in self.paused]
        taken = records[:max_records]
        self._ready = [each for each in self._ready if each not in taken]
        if taken:
            self.demand.on_delivered(len(taken), self._clock())
        return taken

    @property
    def buffered(self) -> int:
        return len(self._ready)

    def leave_out(self, topics: frozenset[str]) -> None:
        self._left_out = topics
        self._wakeup.set()

    def set_paused(self, topics: frozenset[str], *, releases: bool = True) -> None:
        self.paused = topics
        self._wakeup.set()
        self._changed.set()

    def drop_lost(self) -> None:
        lost = [each for each in self._ready if not each.held]
        self._ready = [each for each in self._ready if each.held]
        self.demand.on_dropped(len(lost))
        undelivered = [each for each in lost if each.delivery_count > 1]
        if undelivered and self._options.on_undelivered is not None:
            self._options.on_undelivered(undelivered)

    # Settling.

    def acknowledge(self, record: Any, kind: AcknowledgeType) -> None:
        self.result_log.is_guarded = False
        try:
            verbs = {ACCEPT: record.accept, RELEASE: record.release}
            verbs.get(kind, record.reject)()
        finally:
            self.result_log.is_guarded = self._options.is_guarded

    async def commit(self, timeout: float) -> None:
        with anyio.move_on_after(timeout):
            while self._queued:
                await anyio.sleep(LATENCY)

    # Called by leases (`LeaseOwner`).

    def on_acknowledged(self, lease: Lease) -> None:
        self._queued.append(lease)
        self._wakeup.set()

    def on_delayed(self, lease: Lease, offsets: object, due: float) -> None:
        raise NotImplementedError("a worker delays no releases")

    def forget_expired(self, now: float) -> None:
        pass

    def reject_late_ack(self, lease: Lease, runs: object) -> None:
        """Do nothing: `on_locks_lost` was called."""

    # The end.

    async def drain(
        self, timeout: float = FOREVER, on_fetched: Callable[[], None] = lambda: None
    ) -> None:
        self._is_draining = True
        self.set_paused(frozenset())
        on_fetched()
        while (self._leases or self._ready) and self.state == "open":
            await anyio.sleep(LATENCY)

    async def close_soon(self) -> None:
        if self.state == "open":
            self.state = "closing"
            self._send_acknowledgements()
            self._end_session("the source is closed")
            self.result_log.closed = True
            self._changed.set()
            self._background.cancel()
        with anyio.CancelScope(shield=True):
            await self._background.wait()
        self.state = "closed"

    def shorten_close(self) -> None:
        """Do nothing: a close takes no time."""

    def raise_unreported_crash(self) -> None:
        """Do nothing: the task does not fail."""

    # Faults.

    def cut(self) -> None:
        """Lose the connection, and with it all locks."""
        self._end_session("the connection was lost")
        self._scope = LockScope()
        self._options.on_locks_lost("the connection was lost")
        self._wakeup.set()

    def fail(self, error: Error) -> None:
        """End the member with an error."""
        self.fatal_error = error
        self._changed.set()

    # Requests to the broker.

    async def _exchange(self) -> None:
        while True:
            await self._wakeup.wait_until(self._next_fetch())
            await anyio.sleep(LATENCY)
            faults = self._broker.faults
            if self._queued and faults.find("ShareAcknowledge"):
                self.cut()
            self._send_acknowledgements()
            self._fetch()

    async def _heartbeat(self) -> None:
        while True:
            await self.configs.read()
            for _ in range(CONFIG_INTERVAL):
                await anyio.sleep(1.0)  # virtual time
                if fault := self._broker.faults.find("ShareGroupHeartbeat"):
                    code, name = Code[fault.name], fault.name
                    self.fail(AuthorizationError(name, code=code, name=name))

    def _available(self) -> Iterable[Delivery]:
        topics = set(self.topics) - self.paused - self._left_out
        if self._is_draining or self.has_failed:
            topics = set()
        return self._broker.available(sorted(topics), self._clock())

    def _next_fetch(self) -> float:
        if any(True for _ in self._available()):
            return self._prefetch.next_due(self._clock())
        return self._broker.next_expiry(self._clock())

    def _fetch(self) -> None:
        now = self._clock()
        if self._prefetch.next_due(now) > now:
            return
        limit = self._prefetch.record_limit(1, len(self.topics))
        acquired = list(self._available())[:limit]
        for each in acquired:
            self._broker.deliver(each, self, now)
        if self._broker.faults.find("ShareFetch"):
            self.cut()  # the records are delivered, and their locks lost
        elif acquired:
            self._prefetch.measure([], self._broker.lock_duration)
            self._prefetch.on_acquired(len(acquired))
            # Last deliveries first, as the buffer of a member returns them.
            records = [*self._ready, *map(self._record, acquired)]
            self._ready = sorted(records, key=lambda each: -each.delivery_count)
            self._changed.set()
            self._options.on_changed()

    def _record(self, each: Delivery) -> Record[Any, Any]:
        found, duration = each.record, self._broker.lock_duration
        acquired_at = each.deadline - duration
        lease = Lease(
            topic=found.topic,
            share_partition=SharePartition(found.topic.encode(), 0),
            acquired=((found.offset, found.offset, each.count),),
            payload=b"",
            locks=LockTimes(acquired_at, acquired_at, duration),
            lock_scope=self._scope,
            owner=self,
        )
        lease.set_dense_offsets()
        lease.cursor = 1
        self._leases[lease] = each
        value = found.value
        return Record(
            found.topic,
            0,
            found.offset,
            found.timestamp,
            TimestampType.CREATE_TIME,
            found.key,
            memoryview(value) if self._views and value is not None else value,
            found.headers,
            each.count,
            lease,
        )

    def _send_acknowledgements(self) -> None:
        queued, self._queued = self._queued, []
        results = [each for lease in queued for each in self._settle(lease)]
        now = self._clock()
        for lease in list(self._leases):
            if lease.is_settled or lease.locks.last() <= now:
                del self._leases[lease]
        if results and self._options.on_acknowledged is not None:
            self._options.on_acknowledged(results)
        if any(each.type == RENEW and each.error is not None for each in results):
            self._options.on_locks_lost("a renewal failed: INVALID_RECORD_STATE")

    def _settle(self, lease: Lease) -> Iterable[AcknowledgeResult]:
        for _, runs in lease.take_runs():
            for run in runs:
                yield self._apply(lease, run)

    def _apply(self, lease: Lease, run: Run) -> AcknowledgeResult:
        each, now = self._leases.get(lease), self._clock()
        kind = AcknowledgeType(run.kind)
        is_applied = each is not None and self._broker.settle(each, self, kind, now)
        until = now + self._broker.lock_duration if kind == RENEW else 0.0
        lease.on_settled([run], renewed_until=until if is_applied else 0.0)
        if not is_applied:
            lease.abandon()
        error = None if is_applied else FAILURE
        return AcknowledgeResult(lease.topic, 0, run.first, run.last, kind, error)

    def _end_session(self, reason: str) -> None:
        self._scope.ended, self._scope.reason = True, reason
        self.drop_lost()
        for lease in self._leases:
            lease.abandon()
        self._leases.clear()
        self._queued.clear()
        self._broker.release_all(self, self._clock())
