"""The public worker: calls handlers for the records of a share group."""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Unpack, overload

from sharecons.config.options import documented, read_options
from sharecons.config.validation import check_topics
from sharecons.copies.dead_letter_headers import Origin
from sharecons.errors import ConfigurationError, ConsumerStateError
from sharecons.member.group_setup import GroupConfigs
from sharecons.member.record_source import RecordSource
from sharecons.member.settings import MEMBER_OPTIONS, TABLES, MemberSettings
from sharecons.member.source_options import SourceOptions
from sharecons.producer.idempotent import IdempotentProducer
from sharecons.record import KeyT, Record, ValueT
from sharecons.worker.arguments import check_consumed
from sharecons.worker.decorators import HandlerDecorators
from sharecons.worker.handler import (
    Handler,
    HandlerFunction,
    OwnKeyT,
    OwnValueT,
)
from sharecons.worker.life_log import LifeLog
from sharecons.worker.lifecycle import WorkerLifecycle
from sharecons.worker.machine.meters import Meters
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.membership import new_source, source_options
from sharecons.worker.options import WorkerOptions
from sharecons.worker.origins import origin_of_record
from sharecons.worker.registry import HandlerRegistry
from sharecons.worker.retry_topics import read_retry_state
from sharecons.worker.runner import Runner
from sharecons.worker.settings import NO_OPTIONS, WorkerSettings
from sharecons.worker.start_checks import StartChecks

__all__ = ["ShareWorker"]

# No Iterable: to type checkers, a mapping of handlers with wrong types would be one.
Topics = str | Sequence[str] | Set[str]
AnyHandler = HandlerFunction[KeyT, ValueT] | Handler[KeyT, ValueT]
Handlers = Mapping[str, AnyHandler[KeyT, ValueT]]
"""Handlers by the names of topics."""


@documented(WorkerSettings, HandlerSettings, *TABLES, types=WorkerOptions)
class ShareWorker(HandlerDecorators[KeyT, ValueT], WorkerLifecycle):
    """Calls handlers for the records of a share group.

        worker = ShareWorker("orders", charge, group_id="billing")
        await worker.run()

    Several topics have a mapping, or functions with `@worker.handler("orders")`:

        ShareWorker({"orders": charge, "refunds": refund}, group_id="billing")

    A record is accepted when its handler returns. If it raises, the retry policy
    decides: the record waits, still locked, for its next attempt, or it is written to
    the dead-letter queue, or rejected without one. docs/worker.md and
    the pages that it lists explain all of it.

    Args:
        topics: the name of a topic, or names, for `handler`. Or a mapping of handlers
            by topic.
        handler: a function with a record as its argument: a coroutine function, or a
            plain function, which runs in a thread and cannot be cancelled. Or a
            `BatchHandler`, or a `Handler` with settings of its own.
        group_id: the share group. An id that is not in use makes a new group.
        options: see below; `WorkerOptions` has their types. Options of a `Handler` are
            for all handlers that do not have them themselves.

    Raises:
        ConfigurationError: an argument is invalid or unknown.
    """

    @overload
    def __init__(
        self: "ShareWorker[bytes, bytes]",
        topics: Topics | Handlers[bytes, bytes] | None = None,
        handler: AnyHandler[bytes, bytes] | None = None,
        *,
        group_id: str,
        **options: Unpack[WorkerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: "ShareWorker[OwnKeyT, bytes]",
        topics: Topics | Handlers[OwnKeyT, bytes] | None = None,
        handler: AnyHandler[OwnKeyT, bytes] | None = None,
        *,
        group_id: str,
        key_deserializer: Callable[[bytes], OwnKeyT],
        **options: Unpack[WorkerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: "ShareWorker[bytes, OwnValueT]",
        topics: Topics | Handlers[bytes, OwnValueT] | None = None,
        handler: AnyHandler[bytes, OwnValueT] | None = None,
        *,
        group_id: str,
        value_deserializer: Callable[[bytes], OwnValueT],
        **options: Unpack[WorkerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        topics: Topics | Handlers[KeyT, ValueT] | None = None,
        handler: AnyHandler[KeyT, ValueT] | None = None,
        *,
        group_id: str,
        key_deserializer: Callable[[bytes], KeyT],
        value_deserializer: Callable[[bytes], ValueT],
        **options: Unpack[WorkerOptions],
    ) -> None: ...

    def __init__(
        self,
        topics: Any = None,
        handler: Any = None,
        *,
        group_id: str,
        **options: Any,
    ) -> None:
        own, defaults, rest = read_options(
            "ShareWorker",
            options,
            WorkerSettings,
            HandlerSettings,
            others=MEMBER_OPTIONS,
            reasons=NO_OPTIONS,
        )
        self._own = settings = WorkerSettings(**own)
        member = MemberSettings.of("ShareWorker", group_id, **rest)
        self._registry = HandlerRegistry(HandlerSettings(**defaults), member)
        self._registry.add_all(_given_handlers(topics, handler))
        meters = Meters() if settings.collect_metrics else None
        source = source_options(
            member,
            self._registry.topics,
            check_before_joining=self._check_before_joining,
            on_acknowledged=settings.on_acknowledged,
            on_locks_lost=self._on_locks_lost,
            on_undelivered=self._on_undelivered,
            meters=meters,
        )
        super().__init__(
            self._new_source(source),
            source.settings,
            settings.health,
            handle_signals=settings.handle_signals,
            meters=meters,
        )

    @property
    def concurrency(self) -> int:
        """How many calls run at a time, of all handlers."""
        return self._own.concurrency

    @property
    def shutdown_grace(self) -> float:
        """Seconds for handlers to finish when the worker stops."""
        return self._own.shutdown_grace

    @property
    def dead_letter_topics(self) -> tuple[str, ...]:
        """The topics of the dead-letter queues of all handlers, sorted."""
        return tuple(sorted(self._registry.routes.dead_letter_topics))

    # Handlers.

    def _add_handler(self, topics: tuple[str, ...], handler: Handler[Any, Any]) -> None:
        if self._is_started:
            raise ConsumerStateError(
                f"handler {handler.name} of {', '.join(topics)} is too late: handlers "
                "are registered before the worker starts"
            )
        self._registry.add(topics, handler)
        self._source.subscribe(check_topics(self._registry.topics))

    def origin(self, record: Record[Any, Any]) -> Origin:
        """Return which record of the source topic this is.

        For a record of a retry topic, this is the record that failed before. A record
        that is delivered twice has the same topic, partition and offset here, even if
        it moved to a retry topic in between.
        """
        if record.topic in self._registry.routes.retry_topics:
            state = read_retry_state(record.headers)
            if state is not None:
                return state.origin
        return origin_of_record(record, self.group_id)

    # One run.

    def _prepare(self) -> None:
        if not self._registry.routes.by_topic:
            raise ConfigurationError(
                "the worker has no handler: pass topics and a handler, as in "
                "ShareWorker('orders', charge, ...), or register functions with "
                "@worker.handler('orders') before it starts"
            )

    def _new_source(self, options: SourceOptions) -> RecordSource:
        return new_source(options)

    async def _check_before_joining(self, configs: GroupConfigs) -> None:
        checks = StartChecks(
            self._settings,
            self._brokers,
            self._registry.routes,
            create_topics=self._own.create_topics,
        )
        await checks.run(configs)

    @property
    def _releases_paused(self) -> bool:
        queues = self._registry.routes.routes
        return all(each.settings.max_attempts > 1 for each in queues)

    def _log_start(self, log: LifeLog) -> None:
        log.on_start(self.member_id, self._registry.routes, self.concurrency)

    def _new_runner(self, producer: IdempotentProducer, log: LifeLog) -> Runner:
        return Runner(
            self._source,
            producer,
            self._own,
            self._registry.routes,
            meters=self._meters,
            running_records=self.running_records,
            life_log=log,
            conditions=self._conditions,
        )


def _given_handlers(
    topics: Any, handler: Any
) -> list[tuple[tuple[str, ...], Handler[Any, Any]]]:
    """Return the topics of each handler that the constructor has received.

    Raises:
        ConfigurationError: the arguments contradict each other, or one is invalid.
    """
    if isinstance(topics, Mapping):
        if handler is not None:
            raise ConfigurationError(
                "handler cannot be given with a mapping, which has a handler for each "
                "topic; omit the argument, or pass topics without handlers"
            )
        if not topics:
            raise ConfigurationError(
                "topics must be a mapping of handlers by topic, but it is empty; omit "
                "it to register functions with @worker.handler"
            )
        return [
            (check_consumed(topic), _as_handler(each)) for topic, each in topics.items()
        ]
    if topics is None and handler is None:
        return []
    if topics is None:
        raise ConfigurationError(
            "topics must be given with a handler: write ShareWorker('orders', charge, "
            "group_id='billing')"
        )
    names = check_consumed(topics)
    if handler is None:
        raise ConfigurationError(
            f"handler must be given with topics ({', '.join(names)}): write "
            "ShareWorker('orders', charge, group_id='billing'), or omit the topics and "
            "register functions with @worker.handler('orders')"
        )
    return [(names, _as_handler(handler))]


def _as_handler(given: Any) -> Handler[Any, Any]:
    return given if isinstance(given, Handler) else Handler(given)
