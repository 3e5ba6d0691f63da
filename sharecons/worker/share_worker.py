"""The public worker: calls a handler for each record of a share group."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any, Final, Generic, cast, get_args

import anyio

from sharecons.config.validation import (
    check_bool,
    check_choice,
    check_count,
    check_number,
)
from sharecons.consumer.share_consumer import ShareConsumer
from sharecons.errors import ConsumerStateError
from sharecons.net.broker_pool import BrokerPool
from sharecons.producer.idempotent import IdempotentProducer
from sharecons.record import KeyT, Record, TopicPartition, ValueT
from sharecons.stop_signals import stop_on_signals
from sharecons.worker.arguments import (
    check_consumer,
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
from sharecons.worker.machine.settings import HandlerSettings, OnDeserializationError
from sharecons.worker.membership import WorkerMembership
from sharecons.worker.middleware import Middleware, check_middleware
from sharecons.worker.options import WorkerOptions
from sharecons.worker.origins import origin_of_record
from sharecons.worker.outcome_events import OutcomeEvent, check_on_outcome
from sharecons.worker.retry_policy import DAY, RetryPolicy
from sharecons.worker.retry_topics import RetryTopic, RetryTopics, read_retry_state
from sharecons.worker.routes import Route, Routes
from sharecons.worker.runner import Runner
from sharecons.worker.start_checks import StartChecks
from sharecons.worker.stats import WorkerStats

__all__ = ["ShareWorker"]

MIB: Final = 1 << 20
MIN_TIMEOUT: Final = 0.001


class ShareWorker(Generic[KeyT, ValueT]):
    """Calls a handler for each record of a share group.

    A record is accepted when its handler returns. If it raises, the retry policy
    decides: the record waits, still locked, for its next attempt, or it is written to
    the dead-letter queue, or rejected without one. docs/worker.md explains all of it.

    Args:
        consumer: a consumer that is not started; the worker starts and closes it, and
            acknowledges its records.
        handler: a function with a record as its argument: a coroutine function, or a
            plain function, which runs in a thread and cannot be cancelled. Or a
            `BatchHandler`.
        concurrency: how many handlers run at a time.
        timeout: seconds for one call of the handler; then it is cancelled, and the
            attempt has failed with a TimeoutError. A thread cannot be cancelled: it
            takes a slot until it ends, see docs/worker.md.
        max_bytes: no more records are taken while those held have as many bytes.
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
        middleware: coroutine functions with an `Attempt` and `call_next` as arguments,
            which wrap each call of the handler; the first one is the outermost.
        on_outcome: a plain function with an `OutcomeEvent` as its argument, called for
            each outcome of a record, even without a call of the handler.

    Raises:
        ConfigurationError: an argument is invalid.
    """

    def __init__(
        self,
        consumer: ShareConsumer[KeyT, ValueT],
        handler: Callable[[Record[KeyT, ValueT]], object] | BatchHandler[KeyT, ValueT],
        *,
        concurrency: int = 10,
        timeout: float | None = None,
        max_bytes: int = 64 * MIB,
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
        middleware: Sequence[Middleware] = (),
        on_outcome: Callable[[OutcomeEvent[KeyT, ValueT]], object] | None = None,
    ) -> None:
        check_consumer(consumer)
        check_count("concurrency", concurrency, 1)
        check_count("max_bytes", max_bytes, 1)
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
        topics = RetryTopics(check_retry_topics(retry_topics))
        check_lock_time(max_lock_time, timeout, topics)
        topics.check_delays(policy.longest_delays())
        queue = dead_letter_queue(dead_letter)
        dead_topic = None if queue is None else queue.topic
        check_topics_differ(consumer.subscription, topics.names, dead_topic)
        check_offset_reset(consumer, topics)
        self.consumer = consumer
        call = handler_call(handler, timeout)
        self._middleware = check_middleware(middleware)
        self._on_outcome = check_on_outcome(on_outcome)
        self._handle_signals = handle_signals
        self._create_topics = create_topics
        settings = HandlerSettings(
            max_records=call.max_records,
            max_wait=call.max_wait,
            retry=policy,
            retry_topics=topics,
            dead_letter=dead_topic,
            on_deserialization_error=on_deserialization_error,
            key_order=key_order,
            max_lock_time=max_lock_time,
            stop_on_error=stop_on_error,
        )
        subscription = consumer.subscription
        self._access = WorkerMembership(consumer, sorted(topics.names))
        route = Route(
            settings=settings,
            call=call,
            deserializers=self._access.deserializers,
            dead_letter=queue,
        )
        self._options = WorkerOptions(
            concurrency=concurrency,
            max_bytes=max_bytes,
            shutdown_grace=shutdown_grace,
            routes=Routes(dict.fromkeys(subscription, route)),
        )
        self._runner: Runner | None = None
        self._started = False
        self._stop_requested = False

    async def run(self) -> None:
        """Process records until `stop` is called or a signal arrives; call it once.

        Cancelling this releases the records that are not settled.

        Raises:
            Error: the error that ended the consumer, or why it cannot start.
            ConsumerStateError: it was called before.
            Exception: what a handler raised, with `stop_on_error`.
        """
        if self._started:
            raise ConsumerStateError(
                "the worker ran already; create another ShareWorker and ShareConsumer"
            )
        self._started = True
        with ExitStack() as stack:
            if self._handle_signals:
                group = self.consumer.group_id
                stack.enter_context(stop_on_signals(group, self.stop, self.stop_now))
            try:
                failure = await self._run()
            finally:
                self._access.on_ended()
        if failure is not None:
            raise failure

    async def _run(self) -> Exception | None:
        """Return what ended the run, so that task groups do not wrap it in a group."""
        try:
            if self._stop_requested:
                return None
            async with BrokerPool(self._access.cluster) as brokers:
                self._check_before_joining(brokers)
                async with self._access.running() as has_started:
                    if self._stop_requested or not has_started:
                        return None
                    return await self._run_started(brokers)
        except Exception as error:  # noqa: BLE001 (raised by the caller)
            return error

    async def _run_started(self, brokers: BrokerPool) -> Exception | None:
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            producer = IdempotentProducer(brokers)
            self._runner = Runner(
                cast("ShareConsumer[Any, Any]", self.consumer),
                self._access,
                producer,
                self._middleware,
                self._on_outcome,
                self._options,
            )
            # Dead letters are written even if the run is cancelled.
            producing = anyio.CancelScope(shield=True)
            tasks.start_soon(_run_in, producing, producer)
            try:
                failure = await self._runner.run()
            finally:
                producing.cancel()
        return failure

    def _check_before_joining(self, brokers: BrokerPool) -> None:
        checks = StartChecks(
            self._access,
            brokers,
            self._options.routes,
            create_topics=self._create_topics,
        )
        self._access.check_before_joining(checks.run)

    async def assigned(self) -> frozenset[TopicPartition]:
        """Wait until the worker has started and has partitions, and return these.

        Another task calls `run`. Records that are written from now on are processed,
        even if a new group starts at the end. See `ShareConsumer.assigned`.

        Raises:
            ClosedError: the worker has ended.
            Others as `ShareConsumer.assigned`.
        """
        return await self._access.wait_until_assigned()

    def stop(self) -> None:
        """Fetch no more; `run` returns once the records fetched until now are settled.

        Before the worker has started, it takes no records, and `run` returns. Handlers
        have `shutdown_grace` seconds, then they are cancelled, and their records are
        released. Call this in the worker's event loop.
        """
        self._stop_requested = True
        self._access.cancel_start()
        if self._runner is not None:
            self._runner.stop()

    def stop_now(self) -> None:
        """Cancel all handlers and release their records; `run` returns.

        It returns within a second, even if brokers do not respond.
        """
        self._stop_requested = True
        self._access.cancel_start()
        self._access.shorten_close()
        if self._runner is not None:
            self._runner.stop_now()

    @property
    def _handler_failed(self) -> bool:
        """True if `run` raises what a handler raised."""
        return self._runner is not None and self._runner.handler_failed

    @property
    def stats(self) -> WorkerStats:
        """The counts of what the worker has done, and of what it does now."""
        return WorkerStats() if self._runner is None else self._runner.stats

    def origin(self, record: Record[KeyT, ValueT]) -> Origin:
        """Return which record of the source topic this is.

        For a record of a retry topic, this is the one that failed before. A record that
        is delivered twice has the same topic, partition and offset here, even if it
        moved to a retry topic in between.
        """
        if record.topic in self._options.routes.retry_topics:
            state = read_retry_state(record.headers)
            if state is not None:
                return state.origin
        return origin_of_record(record, self.consumer.group_id)


async def _run_in(scope: anyio.CancelScope, producer: IdempotentProducer) -> None:
    with scope:
        await producer.run()
