"""`Handler`: a function with settings of its own, for some topics of a worker."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar, Unpack, final, overload

from sharecons.config.options import documented, read_options
from sharecons.deserializers import Deserializers
from sharecons.guard import function_name
from sharecons.record import KeyT, Record, ValueT
from sharecons.worker.arguments import check_lock_time
from sharecons.worker.handlers import BatchHandler, HandlerCall, handler_call
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.options import HandlerOptions
from sharecons.worker.routes import Route

__all__ = ["Handler", "HandlerFunction", "OwnKeyT", "OwnValueT"]

OwnKeyT = TypeVar("OwnKeyT")
OwnValueT = TypeVar("OwnValueT")

HandlerFunction = Callable[[Record[KeyT, ValueT]], object] | BatchHandler[KeyT, ValueT]
"""A function with a record as its argument, or a `BatchHandler`."""


@documented(HandlerSettings, types=HandlerOptions)
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
    ValueT are the types that the worker's deserializers must return: Any if the handler
    has its own.

    Args:
        function: a coroutine function with a record as its argument, or a plain
            function, which runs in a thread and cannot be cancelled. Or a
            `BatchHandler`.
        options: settings of this handler. `bytes` as a deserializer leaves keys or
            values unchanged.

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
        (self._options,) = read_options("Handler", options, HandlerSettings)
        handler_call(function)
        self._function = function

    @property
    def name(self) -> str:
        """The name of the function, for messages."""
        function = self._function
        if isinstance(function, BatchHandler):
            return function_name(function.handler)
        return function_name(function)

    def route(self, defaults: HandlerSettings) -> Route:
        """Return the route of this handler.

        Args:
            defaults: the worker's settings, for what this handler has not.

        Raises:
            ConfigurationError: settings contradict each other.
        """
        timeout = self._options.get("timeout", defaults.timeout)
        call: HandlerCall = handler_call(self._function, timeout)
        settings = replace(
            defaults,
            **self._options,
            max_records=call.max_records,
            max_wait=call.max_wait,
        )
        check_lock_time(settings.max_lock_time, timeout, settings.retry_topics)
        settings.retry_topics.check_delays(settings.retry.longest_delays())
        deserializers = Deserializers(
            settings.key_deserializer, settings.value_deserializer
        )
        return Route(settings=settings, call=call, deserializers=deserializers)
