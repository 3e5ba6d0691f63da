"""`Handler`: a function with settings of its own, for some topics of a worker."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, Unpack, cast, final, get_args, overload

from sharecons.config.validation import (
    check_bool,
    check_choice,
    check_count,
    check_number,
)
from sharecons.deserializers import Deserializers
from sharecons.guard import function_name
from sharecons.record import KeyT, Record, ValueT
from sharecons.worker.arguments import (
    check_lock_time,
    check_retry,
    check_retry_topics,
    dead_letter_queue,
)
from sharecons.worker.handlers import BatchHandler, HandlerCall, handler_call
from sharecons.worker.machine.settings import HandlerSettings, OnDeserializationError
from sharecons.worker.retry_policy import DAY, RetryPolicy
from sharecons.worker.retry_topics import RetryTopics
from sharecons.worker.routes import Route
from sharecons.worker.settings import HandlerOptions, check_names

__all__ = ["Handler", "HandlerFunction", "OwnKeyT", "OwnValueT", "check_options"]

OwnKeyT = TypeVar("OwnKeyT")
OwnValueT = TypeVar("OwnValueT")

HandlerFunction = Callable[[Record[KeyT, ValueT]], object] | BatchHandler[KeyT, ValueT]
"""A function with a record as its argument, or a `BatchHandler`."""

DESERIALIZERS = ("key_deserializer", "value_deserializer")
MIN_TIMEOUT = 0.001


@final
class Handler(Generic[KeyT, ValueT]):
    """A handler with settings of its own, to be passed to `ShareWorker`.

        ShareWorker(
            {
                "orders": charge,
                "refunds": Handler(refund, concurrency=2, dead_letter="refunds.dead"),
            },
            group_id="billing",
        )

    Arguments that are not given have the worker's values. To type checkers, KeyT and
    ValueT are the
    types that the worker's deserializers must return: Any if the handler has its own.

    Args:
        function: a coroutine function with a record as its argument, or a plain
            function, which runs in a thread and cannot be cancelled. Or a
            `BatchHandler`.
        key_deserializer, value_deserializer: plain functions, bytes to objects; `bytes`
            leaves them unchanged.
        options: settings of this handler; `HandlerOptions` has their names.

    Raises:
        ConfigurationError: an argument is invalid or unknown.
    """

    @overload
    def __init__(
        self, function: HandlerFunction[KeyT, ValueT], **options: Unpack[HandlerOptions]
    ) -> None: ...

    @overload
    def __init__(
        self: "Handler[Any, OwnValueT]",
        function: HandlerFunction[OwnKeyT, OwnValueT],
        *,
        key_deserializer: Callable[[bytes], OwnKeyT],
        **options: Unpack[HandlerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: "Handler[OwnKeyT, Any]",
        function: HandlerFunction[OwnKeyT, OwnValueT],
        *,
        value_deserializer: Callable[[bytes], OwnValueT],
        **options: Unpack[HandlerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: "Handler[Any, Any]",
        function: HandlerFunction[OwnKeyT, OwnValueT],
        *,
        key_deserializer: Callable[[bytes], OwnKeyT],
        value_deserializer: Callable[[bytes], OwnValueT],
        **options: Unpack[HandlerOptions],
    ) -> None: ...

    def __init__(self, function: HandlerFunction[Any, Any], **options: Any) -> None:
        known = (*HandlerOptions.__annotations__, *DESERIALIZERS)
        check_names("Handler", options, known)
        check_options(options)
        handler_call(function)
        self._function = function
        self._options = options

    @property
    def name(self) -> str:
        """The name of the function, for messages."""
        function = self._function
        if isinstance(function, BatchHandler):
            return function_name(function.handler)
        return function_name(function)

    def route(self, defaults: Mapping[str, Any]) -> Route:
        """Return the route of this handler.

        Args:
            defaults: the worker's settings, for what this handler has not.

        Raises:
            ConfigurationError: settings contradict each other.
        """
        return new_route(self._function, {**defaults, **self._options})


def check_options(options: Mapping[str, Any]) -> None:
    """Check each of these arguments of a handler alone.

    Raises:
        ConfigurationError: one is invalid.
    """
    if "concurrency" in options:
        check_count("concurrency", options["concurrency"], 1)
    if options.get("timeout") is not None:
        check_number("timeout", options["timeout"], MIN_TIMEOUT, 365 * DAY)
    if "max_lock_time" in options:
        check_number("max_lock_time", options["max_lock_time"], 0.0, 365 * DAY)
    if "on_deserialization_error" in options:
        check_choice(
            "on_deserialization_error",
            options["on_deserialization_error"],
            get_args(OnDeserializationError),
        )
    for name in ("key_order", "stop_on_error"):
        if name in options:
            check_bool(name, options[name])
    check_retry(options.get("retry"))
    if "retry_topics" in options:
        RetryTopics(check_retry_topics(options["retry_topics"]))
    dead_letter_queue(options.get("dead_letter"))
    Deserializers(options.get("key_deserializer"), options.get("value_deserializer"))


def new_route(function: HandlerFunction[Any, Any], options: Mapping[str, Any]) -> Route:
    """Return the route of a function.

    Args:
        options: all settings, checked by `check_options`; a concurrency of None limits
            nothing.

    Raises:
        ConfigurationError: settings contradict each other.
    """
    timeout, max_lock_time = options["timeout"], options["max_lock_time"]
    retry = options["retry"] or RetryPolicy()
    topics = RetryTopics(check_retry_topics(options["retry_topics"]))
    check_lock_time(max_lock_time, timeout, topics)
    topics.check_delays(retry.longest_delays())
    queue = dead_letter_queue(options["dead_letter"])
    call: HandlerCall = handler_call(function, timeout)
    settings = HandlerSettings(
        concurrency=options.get("concurrency"),
        max_records=call.max_records,
        max_wait=call.max_wait,
        retry=retry,
        retry_topics=topics,
        dead_letter=None if queue is None else queue.topic,
        on_deserialization_error=cast(
            "OnDeserializationError", options["on_deserialization_error"]
        ),
        key_order=options["key_order"],
        max_lock_time=max_lock_time,
        stop_on_error=options["stop_on_error"],
    )
    deserializers = Deserializers(
        options["key_deserializer"], options["value_deserializer"]
    )
    return Route(
        settings=settings, call=call, deserializers=deserializers, dead_letter=queue
    )
