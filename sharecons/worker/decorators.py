"""`@worker.handler(...)`: registers functions as handlers of topics."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar, Unpack, final, overload

from sharecons.errors import ConfigurationError
from sharecons.guard import function_name
from sharecons.record import KeyT, Record, ValueT
from sharecons.worker.arguments import check_consumed
from sharecons.worker.handler import Handler, OwnKeyT, OwnValueT
from sharecons.worker.handlers import BatchHandler, HandlerBatch
from sharecons.worker.options import HandlerOptions

__all__ = ["BatchDecorator", "HandlerDecorator", "HandlerDecorators"]

ReturnT = TypeVar("ReturnT")

Register = Callable[[Any], None]


@final
class HandlerDecorator(Generic[KeyT, ValueT]):
    """Registers a function of one record, or a `BatchHandler`; returns it unchanged."""

    def __init__(self, register: Register) -> None:
        self._register = register

    @overload
    def __call__(
        self, function: Callable[[Record[KeyT, ValueT]], ReturnT]
    ) -> Callable[[Record[KeyT, ValueT]], ReturnT]: ...

    @overload
    def __call__(
        self, function: BatchHandler[KeyT, ValueT]
    ) -> BatchHandler[KeyT, ValueT]: ...

    def __call__(self, function: Any) -> Any:
        self._register(function)
        return function


@final
class BatchDecorator(Generic[KeyT, ValueT]):
    """Registers a function of many records; returns it unchanged."""

    def __init__(self, register: Register) -> None:
        self._register = register

    def __call__(
        self, function: Callable[[HandlerBatch[KeyT, ValueT]], ReturnT]
    ) -> Callable[[HandlerBatch[KeyT, ValueT]], ReturnT]:
        self._register(function)
        return function


class HandlerDecorators(ABC, Generic[KeyT, ValueT]):
    """Adds `handler` to `ShareWorker`."""

    @abstractmethod
    def _add_handler(self, topics: tuple[str, ...], handler: Handler[Any, Any]) -> None:
        """Register a handler; see `handler` for what this raises."""

    @overload
    def handler(
        self, *topics: str | Iterable[str], **options: Unpack[HandlerOptions]
    ) -> HandlerDecorator[KeyT, ValueT]: ...

    @overload
    def handler(
        self,
        *topics: str | Iterable[str],
        key_deserializer: Callable[[bytes], OwnKeyT],
        **options: Unpack[HandlerOptions],
    ) -> HandlerDecorator[OwnKeyT, ValueT]: ...

    @overload
    def handler(
        self,
        *topics: str | Iterable[str],
        value_deserializer: Callable[[bytes], OwnValueT],
        **options: Unpack[HandlerOptions],
    ) -> HandlerDecorator[KeyT, OwnValueT]: ...

    @overload
    def handler(
        self,
        *topics: str | Iterable[str],
        key_deserializer: Callable[[bytes], OwnKeyT],
        value_deserializer: Callable[[bytes], OwnValueT],
        **options: Unpack[HandlerOptions],
    ) -> HandlerDecorator[OwnKeyT, OwnValueT]: ...

    @overload
    def handler(
        self,
        *topics: str | Iterable[str],
        max_records: int,
        max_wait: float = ...,
        **options: Unpack[HandlerOptions],
    ) -> BatchDecorator[KeyT, ValueT]: ...

    @overload
    def handler(
        self,
        *topics: str | Iterable[str],
        max_records: int,
        max_wait: float = ...,
        key_deserializer: Callable[[bytes], OwnKeyT],
        **options: Unpack[HandlerOptions],
    ) -> BatchDecorator[OwnKeyT, ValueT]: ...

    @overload
    def handler(
        self,
        *topics: str | Iterable[str],
        max_records: int,
        max_wait: float = ...,
        value_deserializer: Callable[[bytes], OwnValueT],
        **options: Unpack[HandlerOptions],
    ) -> BatchDecorator[KeyT, OwnValueT]: ...

    @overload
    def handler(
        self,
        *topics: str | Iterable[str],
        max_records: int,
        max_wait: float = ...,
        key_deserializer: Callable[[bytes], OwnKeyT],
        value_deserializer: Callable[[bytes], OwnValueT],
        **options: Unpack[HandlerOptions],
    ) -> BatchDecorator[OwnKeyT, OwnValueT]: ...

    def handler(self, *topics: Any, **options: Any) -> Any:
        """Register the function below as the handler of topics.

            @worker.handler("orders", "orders-eu", dead_letter="orders.dead")
            async def charge(record: Record) -> None: ...

        The decorator returns the function unchanged, so that tests can call it.
        Arguments that are not given have the worker's values.

        Args:
            topics: names of topics, or lists of names.
            key_deserializer, value_deserializer: plain functions, bytes to objects.
            max_records, max_wait: the function has a batch of records as its argument,
                with these settings of `BatchHandler`.
            options: settings of this handler; `HandlerOptions` has their names.

        Raises:
            ConfigurationError: an argument is invalid or unknown, or a topic has a
                handler or another purpose. The decorator raises what concerns the
                function.
            ConsumerStateError: the worker has started.
        """
        if len(topics) == 1 and callable(topics[0]):
            name = function_name(topics[0])
            raise ConfigurationError(
                f"@worker.handler needs the topics of {name}; write "
                "@worker.handler('orders')"
            )
        names = check_consumed(*topics)
        batch = {
            name: options.pop(name)
            for name in ("max_records", "max_wait")
            if name in options
        }
        if batch:
            return BatchDecorator(
                lambda function: self._add_handler(
                    names, Handler(_batch_handler(function, batch), **options)
                )
            )
        Handler(_of_any_record, **options)  # checks them above the function
        return HandlerDecorator(
            lambda function: self._add_handler(names, Handler(function, **options))
        )


def _batch_handler(function: Any, arguments: Any) -> BatchHandler[Any, Any]:
    if isinstance(function, BatchHandler):
        raise ConfigurationError(
            "max_records and max_wait are given twice: in the decorator and in the "
            "BatchHandler"
        )
    return BatchHandler(function, **arguments)


async def _of_any_record(record: Any) -> None:
    """Do nothing: stands for the function that is decorated."""
