"""`ShareConsumer`: a Kafka topic as a queue, one record or batch at a time.

docs/traces.md has the path of a record through the modules.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Literal, Unpack, cast

from anyio.abc import TaskGroup

from sharecons.config import validation
from sharecons.config.callables import check_callback
from sharecons.config.options import documented
from sharecons.consumer.acknowledging import Acknowledging
from sharecons.consumer.delivery_queue import DeliveryQueue
from sharecons.consumer.health import Health
from sharecons.consumer.iterators import RecordIterator
from sharecons.consumer.observed_loop import ObservedLoop
from sharecons.consumer.pausing import Pausing
from sharecons.consumer.polling import Poller
from sharecons.consumer.pushed_metrics import PushedMetrics
from sharecons.consumer.receive import (
    BatchIterator,
    EndedLoop,
    accept_passed_records,
)
from sharecons.deserializers import Deserializers
from sharecons.instrumentation import MemberObserver
from sharecons.member.lease_buffer import LeaseBuffer
from sharecons.member.record_source import Acknowledged
from sharecons.member.settings import TABLES, MemberOptions, MemberSettings
from sharecons.member.share_member import ShareMember
from sharecons.member.source_options import SourceOptions
from sharecons.metrics.catalog import MetricName, values_of
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent, new_waiter
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult
from sharecons.record import KeyT, Record, ValueT

__all__ = ["ShareConsumer"]


@documented(*TABLES, types=MemberOptions)
class ShareConsumer(
    Acknowledging, Health, Pausing, PushedMetrics, Generic[KeyT, ValueT]
):
    """A member of a share group (KIP-932).

    Use it as an asynchronous context manager: entering it connects and joins the group.
    Leaving it sends the acknowledgements, releases other records and leaves the group.

        async with ShareConsumer("orders", group_id="billing") as consumer:
            async for record in consumer:
                await charge(record.value)

    Delivery is at least once. With `acknowledgement="implicit"` requesting the next
    record accepts the previous one, unless a method of the record acknowledged it
    otherwise. Leaving the loop by break, a cancel or an exception does not accept the
    current record; it is released when another loop reads or the consumer closes. With
    "explicit" you acknowledge every record yourself.

    Several tasks can read one consumer, each with its own loop: every record goes to
    one of them.

    Args:
        topics: names of topics to consume, or lists of names; `subscribe` replaces
            them.
        group_id: the share group. An id that is not in use makes a new group.
        acknowledgement: "implicit" or "explicit".
        on_acknowledged: called with the results (`AcknowledgeResult`) of explicit and
            implicit acknowledgements. A plain function, not a coroutine function; if it
            raises, the next read raises `CallbackError`.
        key_deserializer, value_deserializer: plain functions, bytes to objects; None
            stays None. A record that cannot be deserialized raises
            `DeserializationError` and is released unless you reject it. Any callback's
            KeyboardInterrupt and SystemExit are raised unchanged.
        handle_signals: SIGTERM or Ctrl-C ends the loops at their next request, which
            accepts as usual; other records are released. `poll` raises ClosedError.
            A second signal has its usual effect. Start it in the main thread.
        options: see below.

    Raises:
        ConfigurationError: an argument is invalid.
    """

    def __init__(
        self,
        *topics: str | Iterable[str],
        group_id: str,
        acknowledgement: Literal["implicit", "explicit"] = "implicit",
        on_acknowledged: Acknowledged | None = None,
        key_deserializer: Callable[[bytes], KeyT] | None = None,
        value_deserializer: Callable[[bytes], ValueT] | None = None,
        handle_signals: bool = False,
        **options: Unpack[MemberOptions],
    ) -> None:
        super().__init__()
        validation.check_choice("acknowledgement", acknowledgement, validation.MODES)
        validation.check_bool("handle_signals", handle_signals)
        settings = MemberSettings.of("ShareConsumer", group_id, **options)
        check_callback("on_acknowledged", on_acknowledged)
        source = SourceOptions(
            settings=settings,
            topics=validation.check_topics(topics),
            start_tasks=self._start_tasks,
            on_acknowledged=on_acknowledged,
        )
        self._member = ShareMember(source, self._create_queue)
        self._acknowledgement = acknowledgement
        self._deserializers = Deserializers(key_deserializer, value_deserializer)
        self._handle_signals = handle_signals
        self._progress = AutoResetEvent()
        self._drain_due = AutoResetEvent()

    # Records.

    def __aiter__(self) -> RecordIterator[KeyT, ValueT]:
        """Loop over records.

        In implicit mode each record is accepted when the next one is requested.
        Cancelling the loop while it waits loses nothing. Use one loop per task.

        Raises:
            ClosedError, NotSubscribedError, ConsumerStateError: it cannot be read now.
            DeserializationError, CorruptRecordsError, CallbackError: another loop can
                continue after it.
            Error: the error that ended the consumer; every later call raises it again.
        """
        if self._is_start_stopped:
            return cast("RecordIterator[KeyT, ValueT]", EndedLoop())
        self._check_readable()
        loop: RecordIterator[KeyT, ValueT] = RecordIterator(
            self._queue, self._progress.set
        )
        if self.observer is None:
            return loop
        return cast("RecordIterator[KeyT, ValueT]", ObservedLoop(loop, self.observer))

    def batches(self) -> BatchIterator[KeyT, ValueT]:
        """Loop over batches: records of one partition, acknowledged together.

        In implicit mode each batch is accepted when the next one is requested, except
        records that were acknowledged otherwise. Raises as the loop over records.
        """
        if self._is_start_stopped:
            return cast("BatchIterator[KeyT, ValueT]", EndedLoop())
        self._check_readable()
        loop: BatchIterator[KeyT, ValueT] = BatchIterator(self._queue)
        if self.observer is None:
            return loop
        return cast("BatchIterator[KeyT, ValueT]", ObservedLoop(loop, self.observer))

    async def poll(
        self, *, timeout: float = 0.0, max_records: int | None = None
    ) -> list[Record[KeyT, ValueT]]:
        """Return available records; wait for the first at most `timeout` seconds.

        In implicit mode this accepts the records of the previous poll in the same task;
        records that a task has not settled when it ends are released. Cancelling this
        loses nothing. Raises as the loop over records.
        """
        validation.check_timeout(timeout)
        if max_records is not None:
            validation.check_count("max_records", max_records, 1)
        self._check_readable()
        deadline = self._queue.clock() + timeout
        if self.observer is None:
            return await self._poller.poll(deadline, max_records)
        with self.observer.receiving() as receive:
            records = await self._poller.poll(deadline, max_records)
            receive.records = records
        return records

    async def commit(self, *, timeout: float = 30.0) -> list[AcknowledgeResult]:
        """Send pending acknowledgements and return one result per offset range.

        This also waits for acknowledgements in flight. In implicit mode the current
        record is not included, unless you acknowledged it. After a cancel or a timeout
        the acknowledgements are still sent; `on_acknowledged` receives their results.

        Raises:
            CommitTimeoutError: some results have not arrived in time.
            ClosedError: the consumer is closed.
        """
        validation.check_timeout(timeout)
        self._check_readable()
        self._member.buffer.raise_fatal_error()
        self._queue.accept_passed()
        return await self._member.commit(timeout)

    # The subscription.

    def subscribe(self, *topics: str | Iterable[str]) -> None:
        """Replace the subscription by these topics.

        Prefetched records of other topics are released; pending acknowledgements are
        sent. Pass names one by one or as a list; without any, this is `unsubscribe()`.
        A topic can be created after this call.

        Raises:
            ConfigurationError: a topic name is invalid or repeated.
            ClosedError: the consumer is closed.
        """
        self._check_readable()
        names = validation.check_topics(topics)
        self._member.subscribe(names)
        self._queue.on_subscribed(subscribed=bool(names))

    def unsubscribe(self) -> None:
        """Stop consuming and leave the group, until `subscribe` is called again."""
        self.subscribe()

    @property
    def subscription(self) -> tuple[str, ...]:
        """The topics of the subscription."""
        return self._member.topics

    @property
    def group_id(self) -> str:
        """The share group."""
        return self._member.group_id

    @property
    def member_id(self) -> str:
        """The member id, as sent to the group coordinator."""
        return self._member.settings.fetch.member_id

    def metrics(self) -> Mapping[MetricName, float]:
        """Return the current values of all metrics (KIP-932, "Client metrics").

        `sharecons.metrics.METRICS` has their units and descriptions. Averages and
        maxima without a value are NaN, times since an event -1.0. Any thread can call
        this, even before the consumer starts and after it is closed.
        """
        return values_of(self._member.recorder)

    @property
    def observer(self) -> MemberObserver | None:
        """Observes what the consumer receives and settles, if anything does."""
        return self._member.observer

    # Called by the member as it starts.

    def _create_queue(self, buffer: LeaseBuffer) -> DeliveryQueue:
        assert self._member.loop_guard is not None, "starting"
        self._queue = DeliveryQueue(
            buffer,
            implicit=self._acknowledgement != "explicit",
            new_waiter=new_waiter,
            deserializers=self._deserializers,
            check_caller=self._member.loop_guard.check,
            group_id=self.group_id,
        )
        self._queue.subscribed = bool(self._member.topics)
        self._poller = Poller(self._queue, ShareConsumer.poll.__code__)
        return self._queue

    def _start_tasks(self, tasks: TaskGroup) -> None:
        tasks.start_soon(accept_passed_records, self._queue, self._progress)
        tasks.start_soon(self._drain_when_due)

    def _end_loops(self) -> None:
        self._queue.end_loops()
        self._drain_due.set()

    async def _drain_when_due(self) -> None:
        await self._drain_due.wait_until(FOREVER)
        await self._member.drain()

    def __repr__(self) -> str:
        topics = ", ".join(self._member.topics)
        member = self._member
        has_failed = member.state == "open" and member.has_failed
        state = "failed" if has_failed else member.state
        return f"<ShareConsumer {state}, group {self.group_id!r}, topics: {topics}>"
