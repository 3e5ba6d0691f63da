"""`ShareMember`: the core below consumer, worker, taskiq and Spark."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from uuid import UUID

import anyio
from anyio.abc import TaskGroup

from sharecons.errors import (
    ClosedError,
    CommitTimeoutError,
    ConsumerStateError,
    NotSubscribedError,
)
from sharecons.instrumentation import MemberObserver
from sharecons.member.group_configs import GroupConfigReader
from sharecons.member.group_start import connect_and_check
from sharecons.member.lease_buffer import BufferListener, LeaseBuffer
from sharecons.member.lifecycle import Lifecycle
from sharecons.member.member_tasks import MemberTasks
from sharecons.member.pausable_buffer import PausableBuffer
from sharecons.member.record_source import SHORT_SETTLE_TIMEOUT, Acknowledged
from sharecons.member.source_options import SourceOptions
from sharecons.member.stored_error import StoredError
from sharecons.metrics.application_metrics import ApplicationMetrics
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.background import Background
from sharecons.net.connection import Connection
from sharecons.net.io.event_loop import FOREVER, running_clock
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult
from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.demand import FetchDemand
from sharecons.protocol.reported_errors import fetch_error, topic_error
from sharecons.record import TopicPartition

if TYPE_CHECKING:  # loaded only if brokers collect metrics
    from sharecons.member.telemetry import Send, Telemetry

__all__ = ["LEAVE_TIMEOUT", "SETTLE_TIMEOUT", "ShareMember"]

SETTLE_TIMEOUT: Final = 3.0
"""Seconds to send the last acknowledgements. `sharecons run` exits a second later."""

LEAVE_TIMEOUT: Final = 0.4
"""Seconds to wait for the response to the leave, on which nothing depends."""


class ShareMember(Lifecycle):
    """One member of a share group.

    After `start`, its user states its demand (`demand`), takes records from `buffer`,
    and acknowledges each record by the methods of the record or of its lease. The
    listener is called when records, errors, lost locks or a fatal error arrive.
    `drain`, `close` and `close_soon` end it. All calls belong to the event loop that it
    was started in.

    Args:
        new_listener: returns the listener of the buffer; called when it has connected.

    Attributes:
        recorder: the metrics.
        application_metrics: the application's, which are pushed as well.
        settings: how it connects, joins its group and fetches.
        topics: the subscription.
        buffer: the acquired records, once the member has connected.
        demand: decides how much is fetched, once the member has connected.
        configs: the configs of the group, once the member has connected.
        observer: observes what the member delivers and settles, if anything does.
    """

    buffer: PausableBuffer
    demand: FetchDemand
    configs: GroupConfigReader

    def __init__(
        self,
        options: SourceOptions,
        new_listener: Callable[[LeaseBuffer], BufferListener],
    ) -> None:
        super().__init__(options.owner)
        self.settings = options.settings
        self.topics = options.topics
        self.recorder = MetricsRecorder()
        self.recorder.on_acknowledge_latency = options.on_acknowledge_latency
        self.application_metrics = ApplicationMetrics()
        self.observer: MemberObserver | None = self.settings.new_observer()
        self._options = options
        self._new_listener = new_listener
        self._on_acknowledged = options.on_acknowledged
        self._tasks: MemberTasks | None = None

    @property
    def group_id(self) -> str:
        """The share group."""
        return self.settings.fetch.group_id

    # The subscription.

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Replace the topics; release buffered records of others."""
        self.topics = topics
        if self._tasks is None:
            return
        if self.paused:
            self.set_paused(self.paused.intersection(topics))
        self.buffer.keep_only(topics)
        self._started.subscribe(topics)

    @property
    def paused(self) -> frozenset[str]:
        """The topics of the subscription that are not fetched now."""
        return frozenset() if self._tasks is None else self.buffer.paused

    def set_paused(self, topics: frozenset[str], *, releases: bool = True) -> None:
        """Fetch nothing from these topics, and withhold their buffered records.

        Args:
            releases: release buffered records on their first delivery after a minute.
        """
        self.buffer.set_paused(topics, releases=releases)
        self._started.set_paused(topics)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions; other members can have them as well."""
        return frozenset() if self._tasks is None else self._tasks.assignment

    async def assigned(self) -> frozenset[TopicPartition]:
        """Wait until partitions of the topics are assigned, and return them.

        Then records that are written to these partitions belong to the group, even if
        it is new and starts at the end. Cancelling this changes nothing.

        Raises:
            AuthorizationError, BrokerError: a topic or partition cannot be read.
            ClosedError, NotSubscribedError, ConsumerStateError: it cannot be read now.
            Error: the error that ended the member.
        """
        self._check_assignable()
        await self._started.wait_for_starts(self._has_assignment)
        return self.assignment

    @property
    def missing_topics(self) -> frozenset[str]:
        """The topics that do not exist, by the latest metadata."""
        tasks = self._tasks
        return frozenset() if tasks is None else tasks.metadata.missing_topics()

    # The state.

    @property
    def has_failed(self) -> bool:
        """True if an error, or the end of the event loop, has ended the member."""
        has_error = self._tasks is not None and self.buffer.has_failed
        return has_error or super().has_failed

    @property
    def is_connected(self) -> bool:
        """True while heartbeats, fetches and acknowledgements are accepted.

        False before the first heartbeat, when one is overdue by an interval, after a
        failure, without topics, and once the member closes."""
        return self.state == "open" and self._started.problems.is_connected()

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems that last now and are logged as warnings."""
        return self._started.problems.lasting() if self.state == "open" else ()

    def check_can_fetch(self) -> None:
        """Raise the error of a fetch that is repeated now, if any."""
        if self._tasks is not None and (error := self._tasks.problems.fetch_error()):
            raise error

    @property
    def seconds_since_heartbeat(self) -> float | None:
        """Seconds since the group coordinator last accepted a heartbeat, or None."""
        if self._tasks is None:
            return None
        last = self._tasks.membership.heartbeats.last_accepted
        return None if last is None else self.buffer.clock() - last

    @property
    def lock_duration(self) -> float | None:
        """Seconds for which records are locked; None before the first fetch."""
        return None if self._tasks is None else self.demand.lock_duration or None

    async def client_instance_id(self, timeout: float) -> UUID | None:
        """Return the id that brokers have assigned to this client (KIP-714).

        Return None if brokers collect no metrics.

        Raises:
            ConsumerStateError: it is disabled, or the member is not open.
            RequestTimedOutError: no broker has assigned an id in `timeout` seconds.
        """
        self.check_open()
        if not self.settings.enable_metrics_push:
            raise ConsumerStateError(
                "there is no client instance id with enable_metrics_push=False; omit "
                "the argument, and brokers assign one"
            )
        found = self._started.telemetry
        return None if found is None else await found.client_instance_id(timeout)

    # Acknowledgements.

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
        """Send pending acknowledgements and return one result per offset range.

        After a cancel or a timeout (in seconds) they are still sent.

        Raises:
            CommitTimeoutError: some results have not arrived in time.
            ClosedError: the member is closed.
            Error: the error that ended the member.
        """
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
        """Fetch no more; wait until all records are settled and acknowledged.

        Acquired records can still be taken. Once none is unsettled, fetches in flight
        have `timeout` seconds. Call `close` next, even after cancelling this.
        `on_fetched` is called once no fetch is in flight.
        """
        await self._started.drain(timeout, on_fetched)
        self._limit_settling(0.0)  # of responses that did not arrive in time

    async def close_soon(self) -> None:
        """Close, as `close`, within seconds even if brokers do not respond.

        SETTLE_TIMEOUT limits the last acknowledgements, if there are any, and
        LEAVE_TIMEOUT the leave. Cancelling this calls `shorten_close`.
        """
        if self.state == "open":
            self._started.leave_timeout = LEAVE_TIMEOUT
            timeout = SETTLE_TIMEOUT if self._started.flush() else SHORT_SETTLE_TIMEOUT
            self._limit_settling(timeout)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._shorten_close_when_cancelled)
            await self.close(SETTLE_TIMEOUT + LEAVE_TIMEOUT)
            tasks.cancel_scope.cancel()

    def shorten_close(self) -> None:
        """End a close, now or later, within a second. Callbacks can call this."""
        if self.state in ("open", "closing"):
            self._started.leave_timeout = LEAVE_TIMEOUT
            self._limit_settling(SHORT_SETTLE_TIMEOUT)

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
            name, self._start_all_tasks, self._handle_tasks_end, self._release
        )

    def _create_parts(self, connection: Connection, delivery_limit: int) -> MemberTasks:
        """Create the objects that depend on the running event loop."""
        self.recorder.clock = clock = running_clock()
        self.configs = GroupConfigReader(self.group_id, delivery_limit)
        views, fields = self.settings.has_views, self.settings.fetch.log_fields
        self.buffer = PausableBuffer(
            clock, self.recorder, self.configs, views, log_fields=fields
        )
        self.buffer.on_acknowledged = self._on_acknowledged
        self.buffer.on_undelivered = self._options.on_undelivered
        self._tasks = tasks = MemberTasks(
            self.settings,
            self.buffer,
            self.recorder,
            self._create_telemetry,
            observer=self.observer,
        )
        if self._options.advice is not None:
            tasks.result_log.advice = self._options.advice
        tasks.result_log.is_guarded = self._options.is_guarded
        tasks.result_log.reports_lost = not self._options.is_guarded
        self.demand = tasks.demand
        self.buffer.attach(self._new_listener(self.buffer), self.demand)
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

    def _stop_consuming(self) -> None:
        self.buffer.close()

    async def _leave(self) -> None:
        await self._started.close()

    def _abandon(self) -> None:
        self._started.abandon()

    def _on_crash(self, crash: StoredError) -> None:
        self.buffer.fail(crash)

    def _on_tasks_ended(self) -> None:
        self._started.on_tasks_ended()

    async def _release(self) -> None:
        await self._started.release()

    @property
    def _started(self) -> MemberTasks:
        assert self._tasks is not None, "started"
        return self._tasks

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
        metadata = self._started.metadata
        for topic in sorted(set(self.topics) & metadata.unauthorized_topics()):
            raise topic_error(topic, Code.TOPIC_AUTHORIZATION_FAILED)
        for (topic_id, partition), code in self._started.partition_errors.items():
            name = metadata.topic_names.get(topic_id, "?")
            raise fetch_error(name, partition, code, None)
