"""`ShareSource`: one member of a share group, the core below all users of records."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import anyio
from anyio.abc import TaskGroup

from sharecons.errors import (
    ClosedError,
    CommitTimeoutError,
    ConsumerStateError,
    Error,
    LockLostError,
    NotSubscribedError,
)
from sharecons.instrumentation import MemberObserver
from sharecons.member.group_configs import GroupConfigReader
from sharecons.member.group_start import connect_and_check
from sharecons.member.lifecycle import Lifecycle
from sharecons.member.member_tasks import MemberTasks
from sharecons.member.pausable_buffer import PausableBuffer
from sharecons.member.record_source import SHORT_SETTLE_TIMEOUT, Acknowledged
from sharecons.member.record_taker import RecordTaker
from sharecons.member.source_options import SourceOptions
from sharecons.metrics.application_metrics import ApplicationMetrics
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.background import Background
from sharecons.net.connection import Connection
from sharecons.net.io.event_loop import FOREVER, running_clock
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import (
    AcknowledgeFailure,
    AcknowledgeResult,
)
from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.demand import FetchDemand
from sharecons.record import ACCEPT, RELEASE, AcknowledgeType, TopicPartition

if TYPE_CHECKING:  # loaded only if brokers collect metrics
    from sharecons.member.telemetry import Send, Telemetry

__all__ = ["LEAVE_TIMEOUT", "SETTLE_TIMEOUT", "ShareSource"]

SETTLE_TIMEOUT: Final = 3.0
"""Seconds to send the last acknowledgements. `sharecons run` exits a second later."""

LEAVE_TIMEOUT: Final = 0.4
"""Seconds to wait for the response to the leave, on which nothing depends."""


RESPONSE_MARGIN: Final = 0.05
"""Seconds after the `max_wait` of a fetch for its response, when the source drains."""


class ShareSource(Lifecycle):
    """The source of a share group: one member of it.

    Members without a description are as in `RecordSource` and `LeaseSource`. One task
    calls `take`, unless the options have a listener, which takes leases from `buffer`.

    Attributes:
        settings: how it connects, joins its group and fetches.
    """

    demand: FetchDemand
    configs: GroupConfigReader

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options.owner)
        self.settings = options.settings
        self.topics = options.topics
        self.recorder = MetricsRecorder()
        self.recorder.on_acknowledge_latency = options.on_acknowledge_latency
        self.application_metrics = ApplicationMetrics()
        self.observer: MemberObserver | None = self.settings.new_observer()
        self._options = options
        self._on_acknowledged = options.on_acknowledged

    @property
    def group_id(self) -> str:
        return self.settings.fetch.group_id

    @property
    def member_id(self) -> str:
        return self.settings.fetch.member_id

    def set_member_id(self, name: str) -> None:
        if self.state != "new":
            raise ConsumerStateError(
                f"the member id cannot be changed: the {self.owner} has started"
            )
        self.settings = self.settings.with_member_id(name)

    @property
    def servers(self) -> str:
        return ", ".join(map(str, self.settings.cluster.bootstrap))

    # The subscription.

    def subscribe(self, topics: tuple[str, ...]) -> None:
        self.topics = topics
        if self._tasks is None:
            return
        if self.paused:
            self.set_paused(self.paused.intersection(topics))
        self.buffer.keep_only(topics)
        self._started.subscribe(topics)

    @property
    def paused(self) -> frozenset[str]:
        return frozenset() if self._tasks is None else self.buffer.paused

    def set_paused(self, topics: frozenset[str], *, releases: bool = True) -> None:
        self.buffer.set_paused(topics, releases=releases)
        self._started.set_paused(topics)
        self.buffer.listener.on_ready()

    def leave_out(self, topics: frozenset[str]) -> None:
        self._started.leave_out(topics)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset() if self._tasks is None else self._tasks.assignment

    async def assigned(self) -> frozenset[TopicPartition]:
        self._check_assignable()
        await self._started.wait_for_starts(self._has_assignment)
        return self.assignment

    @property
    def missing_topics(self) -> frozenset[str]:
        tasks = self._tasks
        return frozenset() if tasks is None else tasks.metadata.missing_topics()

    # The state.

    @property
    def has_failed(self) -> bool:
        has_error = self._tasks is not None and self.buffer.has_failed
        return has_error or super().has_failed

    @property
    def fatal_error(self) -> Error | None:
        try:
            self.buffer.raise_fatal_error()
        except Error as error:
            return error
        return None

    @property
    def is_connected(self) -> bool:
        return self.state == "open" and self._started.problems.is_connected()

    @property
    def problems(self) -> tuple[str, ...]:
        return self._started.problems.lasting() if self.state == "open" else ()

    def check_can_fetch(self) -> None:
        if self._tasks is not None and (error := self._tasks.problems.fetch_error()):
            raise error

    @property
    def seconds_since_heartbeat(self) -> float | None:
        if self._tasks is None:
            return None
        last = self._tasks.membership.heartbeats.last_accepted
        return None if last is None else self.buffer.clock() - last

    @property
    def lock_duration(self) -> float | None:
        return None if self._tasks is None else self.demand.lock_duration or None

    async def client_instance_id(self, timeout: float) -> UUID | None:
        self.check_open()
        if not self.settings.enable_metrics_push:
            raise ConsumerStateError(
                "there is no client instance id with enable_metrics_push=False; omit "
                "the argument, and brokers assign one"
            )
        found = self._started.telemetry
        return None if found is None else await found.client_instance_id(timeout)

    # Taking.

    async def take(self, max_records: int, *, timeout: float) -> list[Any]:
        return await self._taker.take(max_records, timeout=timeout)

    def take_leases(self) -> list[Lease]:
        return self.buffer.take_leases()

    def take_error(self) -> Exception | None:
        return self.buffer.take_error()

    @property
    def buffered(self) -> int:
        return self.buffer.count

    @property
    def max_records(self) -> int:
        return self.settings.fetch.max_records

    def drop_lost(self) -> None:
        self.buffer.drop_lost()

    # Acknowledgements.

    def acknowledge(self, record: Any, kind: AcknowledgeType) -> None:
        result_log = self._started.result_log
        was_guarded, result_log.is_guarded = result_log.is_guarded, False
        try:
            if kind is ACCEPT:
                record.accept()
            elif kind is RELEASE:
                record.release()
            else:
                record.reject()
        except LockLostError as error:
            # The application has not made this call: its callback gets the result.
            code = Code.INVALID_RECORD_STATE
            failure = AcknowledgeFailure(code, code.name, str(error))
            at = record.topic, record.partition, record.offset, record.offset
            self.buffer.on_ack_results([AcknowledgeResult(*at, kind, failure)])
            raise
        finally:
            result_log.is_guarded = was_guarded

    @property
    def on_acknowledged(self) -> Acknowledged | None:
        """The application's callback for results of acknowledgements, or None."""
        return self._on_acknowledged

    def report_results_to(self, callback: Acknowledged | None) -> None:
        """Replace `on_acknowledged`, at any time."""
        self.check_caller()
        self._on_acknowledged = callback
        if self._tasks is not None:
            self.buffer.on_acknowledged = callback
            self._tasks.result_log.has_listener = callback is not None

    async def commit(self, timeout: float) -> list[AcknowledgeResult]:
        """Return one result per offset range; otherwise as in `RecordSource`."""
        try:
            with anyio.move_on_after(timeout):
                return await self._started.commit()
        except ClosedError:
            self.buffer.raise_fatal_error()
            raise
        raise CommitTimeoutError(
            f"acknowledgements of group {self.group_id!r} are still in flight after "
            f"{timeout:g} s; on_acknowledged receives their results"
        )

    # The end.

    async def drain(
        self, timeout: float = FOREVER, on_fetched: Callable[[], None] = lambda: None
    ) -> None:
        # Withheld records are renewed, so a drain would wait for them for ever.
        if self.paused:
            self.buffer.set_paused(frozenset())
            self.buffer.listener.on_ready()
        await self._started.drain(timeout, on_fetched)
        self._limit_settling(0.0)  # of responses that did not arrive in time

    @property
    def response_timeout(self) -> float:
        return max(SHORT_SETTLE_TIMEOUT, self.settings.fetch.max_wait + RESPONSE_MARGIN)

    async def close_soon(self) -> None:
        if self.state == "open":
            self._started.leave_timeout = LEAVE_TIMEOUT
            timeout = SETTLE_TIMEOUT if self._started.flush() else SHORT_SETTLE_TIMEOUT
            self._limit_settling(timeout)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._shorten_close_when_cancelled)
            await self.close(SETTLE_TIMEOUT + LEAVE_TIMEOUT)
            tasks.cancel_scope.cancel()

    def shorten_close(self) -> None:
        if self.state in ("open", "closing"):
            self._started.leave_timeout = LEAVE_TIMEOUT
            self._limit_settling(SHORT_SETTLE_TIMEOUT)

    @property
    def settling_deadline(self) -> float:
        return self._started.settling.deadline

    def _limit_settling(self, timeout: float) -> None:
        settling = self._started.settling
        settling.deadline = min(settling.deadline, running_clock()() + timeout)

    async def _shorten_close_when_cancelled(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.shorten_close()

    # Implementation of `Lifecycle`.

    async def _open(self) -> Background:
        connection, delivery_limit = await connect_and_check(
            self.settings,
            self.topics,
            self._options.check_before_joining,
            self._check_starting,
        )
        tasks = self._create_parts(connection, delivery_limit)
        tasks.subscribe(self.topics)
        name = f"sharecons, group {self.group_id!r}"
        return Background(
            name, self._start_all_tasks, self._handle_tasks_end, tasks.release
        )

    def _create_parts(self, connection: Connection, delivery_limit: int) -> MemberTasks:
        """Create the objects that depend on the running event loop."""
        options, settings = self._options, self.settings
        self.recorder.clock = clock = running_clock()
        self.configs = GroupConfigReader(self.group_id, delivery_limit)
        self.buffer = buffer = PausableBuffer(
            clock,
            self.recorder,
            self.configs,
            settings.has_views,
            log_fields=settings.fetch.log_fields,
        )
        buffer.on_acknowledged = self._on_acknowledged
        buffer.on_undelivered = options.on_undelivered
        self._tasks = tasks = MemberTasks(
            settings,
            buffer,
            self.recorder,
            self._create_telemetry,
            observer=self.observer,
        )
        if options.advice is not None:
            tasks.result_log.advice = options.advice
        tasks.result_log.is_guarded = options.is_guarded
        tasks.result_log.reports_lost = not options.is_guarded
        self.demand = tasks.demand
        self._taker = RecordTaker(buffer, options)
        buffer.attach(options.listener or self._taker, self.demand)
        tasks.use_connection(connection)
        return tasks

    def _create_telemetry(self, send: "Send") -> "Telemetry | None":
        if not self.settings.enable_metrics_push:
            return None
        from sharecons.member.telemetry import Telemetry

        return Telemetry(
            self.settings.fetch,
            self.recorder,
            self.application_metrics,
            send,
            rack=self.settings.client_rack,
        )

    def _start_all_tasks(self, tasks: TaskGroup) -> None:
        self._started.start(tasks)
        if self._options.start_tasks is not None:
            self._options.start_tasks(tasks)

    # Assignment.

    def _has_assignment(self) -> bool:
        self._check_assignable()
        topics = {each.topic for each in self.assignment}
        return bool(topics) and topics.issubset(self.topics)

    def _check_assignable(self) -> None:
        """Raise the error because of which the member gets no records, if any."""
        self.check_open()
        self.buffer.raise_fatal_error()
        if not self.topics:
            raise NotSubscribedError(
                "the consumer has no topics, so it has no partitions; call subscribe()"
            )
        self._started.check_readable(self.topics)
