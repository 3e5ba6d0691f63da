"""The application's handlers, called in one way: records in, an error or None for each.

A handler is a coroutine function or a plain function with one record as its argument,
or a `BatchHandler`. Plain functions run in threads.
"""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Generic, Protocol, cast, final, overload

import anyio
from anyio import to_thread

from sharecons.config.validation import check_count, check_number, is_generator
from sharecons.errors import ConfigurationError
from sharecons.net.background import current_task
from sharecons.record import KeyT, Record, ValueT

__all__ = [
    "BatchCall",
    "BatchHandler",
    "Errors",
    "HandlerBatch",
    "HandlerCall",
    "SingleCall",
    "handler_call",
]

Errors = Sequence[Exception | None]
"""One entry for each record, in order; None accepts it."""

MAX_WAIT: Final = 3600.0


@final
class HandlerBatch(Sequence[Record[KeyT, ValueT]], Generic[KeyT, ValueT]):
    """The records of one call of a batch handler, perhaps of several partitions."""

    def __init__(self, records: Sequence[Record[KeyT, ValueT]]) -> None:
        self._records = records
        self._errors: dict[int, Exception] = {}

    def fail(self, record: Record[KeyT, ValueT], error: Exception) -> None:
        """Note that a record failed, as if a handler had raised `error` for it.

        `error` can be a `Retry`, `Reject` or `DeadLetter`.

        Raises:
            ValueError: the record is not of this batch.
        """
        for index, each in enumerate(self._records):
            if each is record:
                self._errors[index] = error
                return
        raise ValueError(f"{record!r} is not a record of this batch")

    @overload
    def __getitem__(self, index: int) -> Record[KeyT, ValueT]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Record[KeyT, ValueT]]: ...

    def __getitem__(
        self, index: int | slice
    ) -> Record[KeyT, ValueT] | Sequence[Record[KeyT, ValueT]]:
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def errors(self, other: Exception | None = None) -> Errors:
        """Return each record's error; `other` for a record that was not marked."""
        return [self._errors.get(index, other) for index in range(len(self))]

    def __repr__(self) -> str:
        return f"<HandlerBatch of {len(self)} records, {len(self._errors)} failed>"


@final
class BatchHandler(Generic[KeyT, ValueT]):
    """A handler of many records at a time, to be passed to `ShareWorker`.

    If the handler returns None, every record is accepted that it has not marked by
    `HandlerBatch.fail`. It can also return a sequence with an exception or None for
    each record. If it raises, every record fails that it has not marked before.

    Args:
        handler: a coroutine function, or a plain function, which runs in a thread.
        max_records: records of one call.
        max_wait: seconds to wait for more records once the first is there.

    Raises:
        ConfigurationError: an argument is invalid.
    """

    def __init__(
        self,
        handler: Callable[
            [HandlerBatch[KeyT, ValueT]], Awaitable[Errors | None] | Errors | None
        ],
        *,
        max_records: int = 100,
        max_wait: float = 0.1,
    ) -> None:
        _check_callable(handler)
        check_count("max_records", max_records, 1)
        check_number("max_wait", max_wait, 0.0, MAX_WAIT)
        self.handler = handler
        self.max_records = max_records
        self.max_wait = max_wait


class HandlerCall(Protocol):
    """Calls a handler.

    Attributes:
        max_records: how many records a call takes.
        max_wait: seconds to wait for as many.
    """

    max_records: int
    max_wait: float

    async def __call__(self, records: Sequence[Any]) -> Errors:
        """Call the handler; return what it raised, for each record."""
        ...


class SingleCall:
    """Calls a handler of one record."""

    max_records = 1
    max_wait = 0.0

    def __init__(self, function: Callable[[Any], Awaitable[object]]) -> None:
        self._function = function

    async def __call__(self, records: Sequence[Any]) -> Errors:
        try:
            await self._function(records[0])
        except Exception as error:  # noqa: BLE001 (the policy decides about it)
            return [error]
        except BaseException as error:  # noqa: BLE001 (raised again unless asyncio's)
            return [_as_failure(error)]
        return [None]


class BatchCall:
    """Calls a handler of many records."""

    def __init__(
        self,
        function: Callable[[Any], Awaitable[object]],
        max_records: int,
        max_wait: float,
    ) -> None:
        self._function = function
        self.max_records = max_records
        self.max_wait = max_wait

    async def __call__(self, records: Sequence[Any]) -> Errors:
        batch: HandlerBatch[Any, Any] = HandlerBatch(records)
        try:
            returned = await self._function(batch)
        except Exception as error:  # noqa: BLE001 (the policy decides about it)
            return batch.errors(error)
        except BaseException as error:  # noqa: BLE001 (raised again unless asyncio's)
            return batch.errors(_as_failure(error))
        if returned is None:
            return batch.errors()
        if not _are_errors(returned, len(records)):
            return batch.errors(
                TypeError(
                    "a batch handler returns None, or an exception or None for each "
                    f"of the {len(records)} records; not {returned!r:.200}"
                )
            )
        marked = batch.errors()
        return [
            first or second
            for first, second in zip(marked, cast("Errors", returned), strict=True)
        ]


def handler_call(handler: object, concurrency: int) -> HandlerCall:
    """Return what calls a handler; plain functions have `concurrency` threads.

    Raises:
        ConfigurationError: it cannot be called.
    """
    if isinstance(handler, BatchHandler):
        return BatchCall(
            _as_coroutine_function(handler.handler, concurrency),
            handler.max_records,
            handler.max_wait,
        )
    return SingleCall(_as_coroutine_function(_check_callable(handler), concurrency))


def _check_callable(handler: object) -> Callable[[Any], Any]:
    if not callable(handler):
        raise ConfigurationError(
            "handler must be a function with a record as its argument, or a "
            f"BatchHandler, not {handler!r}"
        )
    if inspect.isclass(handler):
        raise ConfigurationError(
            f"handler: {handler!r} is a class: pass a function, or an instance of it"
        )
    if is_generator(handler):
        raise ConfigurationError(
            f"handler: {handler!r} is a generator function: calling it runs nothing, "
            "and its records would be accepted"
        )
    return handler


def _as_coroutine_function(
    handler: Callable[[Any], Any], concurrency: int
) -> Callable[[Any], Awaitable[object]]:
    """Return the handler, or a coroutine function that calls it in a thread.

    A thread cannot be cancelled. If its call is, the thread goes on unobserved, and
    counts for the limit until it ends.
    """
    call = getattr(handler, "__call__", None)  # noqa: B004 (of an object)
    if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call):
        return handler
    limiter: anyio.CapacityLimiter | None = None

    async def call_in_thread(argument: Any) -> object:
        nonlocal limiter
        if limiter is None:
            limiter = anyio.CapacityLimiter(concurrency)
        # A lambda can return a coroutine, which trio does not let threads return.
        (result,) = await to_thread.run_sync(
            lambda: (handler(argument),), limiter=limiter, abandon_on_cancel=True
        )
        return await result if inspect.isawaitable(result) else result

    return call_in_thread


def _as_failure(error: BaseException) -> Exception:
    """Return an exception for a cancellation that only the handler has caused.

    asyncio code can raise CancelledError by awaiting a task that was cancelled. Others,
    and the cancellation of the worker or of this call, are raised.
    """
    if not isinstance(error, anyio.get_cancelled_exc_class()) or _is_cancelled():
        raise error
    failure = RuntimeError("the handler awaited a task that was cancelled")
    failure.__cause__ = error
    return failure


def _is_cancelled() -> bool:
    if anyio.current_effective_deadline() == -math.inf:
        return True
    task = current_task()
    return isinstance(task, asyncio.Task) and task.cancelling() > 0


def _are_errors(returned: object, count: int) -> bool:
    return (
        isinstance(returned, Sequence)
        and len(returned) == count
        and all(each is None or isinstance(each, Exception) for each in returned)
    )
