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
from sharecons.consumer.iterators import RecordIterator
from sharecons.consumer.pausing import Pausing
from sharecons.consumer.polling import Poller
from sharecons.consumer.readers import Readers
from sharecons.consumer.receive import (
    BatchIterator,
    EndedLoop,
    ObservedLoop,
    accept_passed_records,
)
from sharecons.deserializers import Deserializers
from sharecons.instrumentation import MemberObserver
from sharecons.member.record_source import Acknowledged
from sharecons.member.settings import TABLES, MemberOptions, MemberSettings
from sharecons.member.share_source import ShareSource
from sharecons.member.source_options import SourceOptions
from sharecons.metrics.catalog import MetricName, values_of
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent, new_waiter
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult
from sharecons.record import KeyT, Record, TopicPartition, ValueT

__all__ = ["ShareConsumer"]


@documented(*TABLES, types=MemberOptions)
class ShareConsumer(Acknowledging, Pausing, Generic[KeyT, ValueT]):
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
        validation.check_choice("acknowledgement", acknowledgement, validation.MODES)
        validation.check_bool("handle_signals", handle_signals)
        settings = MemberSettings.of("ShareConsumer", group_id, **options)
        check_callback("on_acknowledged", on_acknowledged)
        self._readers = Readers(lambda: self._source.check_caller(), group_id)
        source_options = SourceOptions(
            settings=settings,
            topics=validation.check_topics(topics),
            start_tasks=self._start_tasks,
            on_acknowledged=on_acknowledged,
            listener=self._readers,
        )
        super().__init__(ShareSource(source_options))
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
        self._source.check_open()
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
        self._source.check_open()
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
        self._source.check_open()
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
        self._source.check_open()
        self._source.buffer.raise_fatal_error()
        self._readers.accept_passed()
        return await self._source.commit(timeout)

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
        self._source.check_open()
        names = validation.check_topics(topics)
        self._source.subscribe(names)
        self._queue.on_subscribed(subscribed=bool(names))

    def unsubscribe(self) -> None:
        """Stop consuming and leave the group, until `subscribe` is called again."""
        self.subscribe()

    async def assigned(self) -> frozenset[TopicPartition]:
        """Wait until partitions are assigned, and return them.

        Records that are written to these partitions from now on belong to the group,
        even if it is new and starts at the end (`auto_offset_reset="latest"`), and even
        if nothing was read yet. This takes about a second after joining, and up to
        `max_wait` more while a loop waits for records. Partitions can be added later.
        After `subscribe` this waits until all partitions are of the new topics; not
        each of these topics has partitions then.

        It waits as long as no partition is assigned, for example until a topic is
        created: use `anyio.fail_after`. Cancelling it changes nothing. Several tasks
        can call it at any time, beside loops.

        Raises:
            AuthorizationError, BrokerError: a topic or partition cannot be read. Loops
                raise the error as well.
            ClosedError, NotSubscribedError, ConsumerStateError: it cannot be read now.
            Error: the error that ended the consumer.
        """
        return await self._source.assigned()

    @property
    def subscription(self) -> tuple[str, ...]:
        """The topics of the subscription."""
        return self._source.topics

    @property
    def member_id(self) -> str:
        """The member id, as sent to the group coordinator."""
        return self._source.member_id

    def metrics(self) -> Mapping[MetricName, float]:
        """Return the current values of all metrics (KIP-932, "Client metrics").

        `sharecons.metrics.METRICS` has their units and descriptions. Averages and
        maxima without a value are NaN, times since an event -1.0. Any thread can call
        this, even before the consumer starts and after it is closed.
        """
        return values_of(self._source.recorder)

    @property
    def observer(self) -> MemberObserver | None:
        """Observes what the consumer receives and settles, if anything does."""
        return self._source.observer

    # Called by `Lifecycle` and by the source.

    def _create_queue(self) -> None:
        assert self._source.loop_guard is not None, "started"
        self._queue = DeliveryQueue(
            self._source.buffer,
            self._readers,
            implicit=self._acknowledgement != "explicit",
            subscribed=bool(self._source.topics),
            new_waiter=new_waiter,
            deserializers=self._deserializers,
            check_caller=self._source.loop_guard.check,
        )
        self._poller = Poller(self._queue, ShareConsumer.poll.__code__)

    def _start_tasks(self, tasks: TaskGroup) -> None:
        tasks.start_soon(accept_passed_records, self._readers, self._progress)
        tasks.start_soon(self._drain_when_due)

    def _end_loops(self) -> None:
        self._queue.end_loops()
        self._drain_due.set()

    async def _drain_when_due(self) -> None:
        await self._drain_due.wait_until(FOREVER)
        await self._source.drain()

    def __repr__(self) -> str:
        topics = ", ".join(self._source.topics)
        source = self._source
        has_failed = source.state == "open" and source.has_failed
        state = "failed" if has_failed else source.state
        return f"<ShareConsumer {state}, group {self.group_id!r}, topics: {topics}>"
