"""The public worker: calls a handler for each record of a share group."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, Unpack, cast, get_args

from sharecons.config.callables import check_callback
from sharecons.config.properties import Properties
from sharecons.config.validation import (
    check_bool,
    check_choice,
    check_count,
    check_number,
)
from sharecons.consumer.deserializers import Deserializers
from sharecons.member.lease_buffer import Acknowledged
from sharecons.member.settings import MemberSettings
from sharecons.net.broker_pool import BrokerPool
from sharecons.producer.idempotent import IdempotentProducer
from sharecons.record import KeyT, Record, ValueT
from sharecons.worker.arguments import (
    check_consumed,
    check_hooks,
    check_lock_time,
    check_offset_reset,
    check_retry,
    check_retry_topics,
    check_topics_differ,
    dead_letter_queue,
)
from sharecons.worker.dead_letter_headers import Origin
from sharecons.worker.dead_letters import DeadLetterQueue
from sharecons.worker.handlers import BatchHandler, handler_call
from sharecons.worker.hooks import HookRunner, WorkerHooks
from sharecons.worker.lifecycle import WorkerLifecycle
from sharecons.worker.machine.settings import HandlerSettings, OnDeserializationError
from sharecons.worker.membership import WorkerMembership
from sharecons.worker.options import WorkerOptions
from sharecons.worker.origins import origin_of_record
from sharecons.worker.retry_policy import DAY, RetryPolicy
from sharecons.worker.retry_topics import RetryTopic, RetryTopics, read_retry_state
from sharecons.worker.runner import Runner
from sharecons.worker.settings import MemberOptions, check_names
from sharecons.worker.start_checks import StartChecks

__all__ = ["ShareWorker"]

MIB: Final = 1 << 20
MIN_TIMEOUT: Final = 0.001


PROPERTIES_WITHOUT_EFFECT: Final = {
    "share.acknowledgement.mode": (
        "a worker accepts a record when its handler has returned"
    )
}


class ShareWorker(WorkerLifecycle, Generic[KeyT, ValueT]):
    """Calls a handler for each record of a share group.

        worker = ShareWorker("orders", charge, group_id="billing")
        await worker.run()

    A record is accepted when its handler returns. If it raises, the retry policy
    decides: the record waits, still locked, for its next attempt, or it is written to
    the dead-letter queue, or rejected without one. docs/worker.md explains all of it.

    Args:
        topics: the names of topics, or one name.
        handler: a function with a record as its argument: a coroutine function, or a
            plain function, which runs in a thread and cannot be cancelled. Or a
            `BatchHandler`.
        group_id: the share group. An id that is not in use makes a new group.
        key_deserializer, value_deserializer: plain functions, bytes to objects; None
            stays None.
        concurrency: how many handlers run at a time.
        timeout: seconds for one call of the handler; then it is cancelled, and the
            attempt has failed with a TimeoutError. A thread cannot be cancelled: it
            takes a slot until it ends, see docs/worker.md.
        max_held_bytes: no more records are taken while the records that the worker
            holds have this many bytes.
        retry: how often, and after which delays, a failed record is tried again.
        retry_topics: where records wait that would stall their partition. The worker
            consumes these topics too. Without any, such records are released, which
            uses up a delivery.
        dead_letter: where records are written after their last attempt: a
            `DeadLetterQueue`, or the name of its topic. No topic that the worker
            consumes.
        create_topics: create the retry topics and the dead-letter topic if they do not
            exist, with the retention and the partitions of the topics that are
            consumed. Otherwise a missing topic is an error of `run`.
        on_deserialization_error: what becomes of a record that a deserializer cannot
            read: "dead_letter" (rejected without a dead-letter queue), "reject",
            "release".
        key_order: process records with one key one after the other. This holds in this
            worker only: other members of the group can process records with the same
            key at the same time. Such records never move to a retry topic.
        max_lock_time: seconds for which a record's lock is renewed in all, with its
            waits. Then its handler is cancelled, and the attempt has failed with a
            TimeoutError.
        shutdown_grace: seconds for handlers to finish when the worker stops.
        handle_signals: stop on SIGTERM and SIGINT; a second one cancels the handlers.
            They are received while a worker runs in the main thread. Earlier signal
            handlers of the application are called as well, and are restored.
        stop_on_error: the first exception of a handler, other than Retry, Reject and
            DeadLetter, stops the worker, and `run` raises it.
        hooks: called around handlers; objects with the methods of `WorkerHooks`.
        on_acknowledged: called with the results (`AcknowledgeResult`) of
            acknowledgements: whether a broker has confirmed an outcome. A plain
            function; what it raises is logged.
        settings: how the worker connects, joins its group and fetches; `MemberOptions`
            has their names.

    Raises:
        ConfigurationError: an argument is invalid or unknown.
    """

    def __init__(
        self,
        topics: str | Iterable[str],
        handler: Callable[[Record[KeyT, ValueT]], object] | BatchHandler[KeyT, ValueT],
        *,
        group_id: str,
        key_deserializer: Callable[[bytes], KeyT] | None = None,
        value_deserializer: Callable[[bytes], ValueT] | None = None,
        concurrency: int = 10,
        timeout: float | None = None,
        max_held_bytes: int = 64 * MIB,
        retry: RetryPolicy | None = None,
        retry_topics: Iterable[RetryTopic] = (),
        dead_letter: DeadLetterQueue | str | None = None,
        create_topics: bool = False,
        on_deserialization_error: OnDeserializationError = "dead_letter",
        key_order: bool = False,
        max_lock_time: float = DAY,
        shutdown_grace: float = 30.0,
        handle_signals: bool = True,
        stop_on_error: bool = False,
        hooks: Sequence[WorkerHooks] = (),
        on_acknowledged: Acknowledged | None = None,
        **settings: Unpack[MemberOptions],
    ) -> None:
        check_names("ShareWorker", settings, ShareWorker.__init__)
        check_count("concurrency", concurrency, 1)
        check_count("max_held_bytes", max_held_bytes, 1)
        check_number("max_lock_time", max_lock_time, 0.0, 365 * DAY)
        check_number("shutdown_grace", shutdown_grace, 0.0, DAY)
        check_choice(
            "on_deserialization_error",
            on_deserialization_error,
            get_args(OnDeserializationError),
        )
        if timeout is not None:
            check_number("timeout", timeout, MIN_TIMEOUT, 365 * DAY)
        check_bool("create_topics", create_topics)
        check_bool("key_order", key_order)
        check_bool("handle_signals", handle_signals)
        check_bool("stop_on_error", stop_on_error)
        check_retry(retry)
        policy = retry if retry is not None else RetryPolicy()
        retries = RetryTopics(check_retry_topics(retry_topics))
        check_lock_time(max_lock_time, timeout, retries)
        retries.check_delays(policy.longest_delays())
        queue = dead_letter_queue(dead_letter)
        dead_topic = None if queue is None else queue.topic
        check_callback("on_acknowledged", on_acknowledged)
        member = MemberSettings.of(group_id=group_id, **settings)
        consumed = check_consumed(topics)
        check_topics_differ(consumed, retries.names, dead_topic)
        check_offset_reset(member, retries)
        access = WorkerMembership(
            member,
            (*consumed, *sorted(retries.names)),
            Deserializers(key_deserializer, value_deserializer),
        )
        access.member.on_acknowledged = on_acknowledged
        super().__init__(access, handle_signals=handle_signals)
        self._handler = handler_call(handler, timeout)
        self._hooks = HookRunner(check_hooks(hooks))
        self._create_topics = create_topics
        self._options = WorkerOptions(
            concurrency=concurrency,
            max_bytes=max_held_bytes,
            shutdown_grace=shutdown_grace,
            handler=HandlerSettings(
                retry=policy,
                retry_topics=retries,
                dead_letter=dead_topic,
                on_deserialization_error=on_deserialization_error,
                key_order=key_order,
                max_lock_time=max_lock_time,
                stop_on_error=stop_on_error,
            ),
        )
        self._dead_letter = queue

    @classmethod
    def from_properties(
        cls,
        properties: Properties,
        topics: str | Iterable[str],
        handler: Callable[[Record[KeyT, ValueT]], object] | BatchHandler[KeyT, ValueT],
        *,
        key_deserializer: Callable[[bytes], KeyT] | None = None,
        value_deserializer: Callable[[bytes], ValueT] | None = None,
        **arguments: Any,
    ) -> "ShareWorker[KeyT, ValueT]":
        """Return a worker with the settings of a Kafka properties file.

        Properties without an effect are logged as warnings. docs/consumer.md has the
        table of all properties.

        Args:
            properties: the path of the file, or properties by name.
            arguments: arguments of `ShareWorker`, which override the file.

        Raises:
            ConfigurationError: the file cannot be read, or a property is invalid,
                missing, or impossible in a share group; the message has the line.
        """
        # Imported here: programs that pass arguments do not need it.
        from sharecons.config.properties.member_arguments import load_arguments

        given = {
            "key_deserializer": key_deserializer,
            "value_deserializer": value_deserializer,
            **arguments,
        }
        create = cast("Callable[..., ShareWorker[KeyT, ValueT]]", cls)
        loaded = load_arguments(properties, given, PROPERTIES_WITHOUT_EFFECT)
        return create(topics, handler, **loaded)

    @property
    def concurrency(self) -> int:
        """How many handlers run at a time."""
        return self._options.concurrency

    @property
    def shutdown_grace(self) -> float:
        """Seconds for handlers to finish when the worker stops."""
        return self._options.shutdown_grace

    @property
    def dead_letter_topics(self) -> tuple[str, ...]:
        """The topics of the dead-letter queues, sorted."""
        dead = self._options.handler.dead_letter
        return () if dead is None else (dead,)

    def _prepare(self) -> None:
        """Do nothing: the constructor has checked everything."""

    def _check_before_joining(self, brokers: BrokerPool) -> None:
        checks = StartChecks(
            self._access,
            brokers,
            self._options.handler.retry_topics,
            self._dead_letter,
            create_topics=self._create_topics,
        )
        self._access.check_before_joining(checks.run)

    def _new_runner(self, producer: IdempotentProducer) -> Runner:
        return Runner(self._access, producer, self._handler, self._hooks, self._options)

    def origin(self, record: Record[KeyT, ValueT]) -> Origin:
        """Return which record of the source topic this is.

        For a record of a retry topic, this is the one that failed before. A record that
        is delivered twice has the same topic, partition and offset here, even if it
        moved to a retry topic in between.
        """
        if record.topic in self._options.handler.retry_topics.names:
            state = read_retry_state(record.headers)
            if state is not None:
                return state.origin
        return origin_of_record(record, self.group_id)
