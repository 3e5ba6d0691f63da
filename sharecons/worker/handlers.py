"""The application's handlers, called in one way: records in, an error or None for each.

A handler is a coroutine function or a plain function with one record as its argument,
or a `BatchHandler`. Plain functions run in threads.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Generic, Protocol, cast, final, overload

import anyio

from sharecons.config.validation import check_count, check_number
from sharecons.record import KeyT, Record, ValueT
from sharecons.worker.error_text import repr_of
from sharecons.worker.handler_checks import check_handler, describe_function
from sharecons.worker.outcomes import decision_of
from sharecons.worker.self_cancel import undo_self_cancel
from sharecons.worker.threads import ThreadCalls

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
            TypeError: `error` is not an exception.
        """
        if not isinstance(error, Exception):
            raise TypeError(
                f"batch.fail takes an exception for the record, not {repr_of(error)}"
            )
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
        check_handler(handler, "batch of records")
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
        threads: calls the handler, if it is a plain function.
        name: the name of the handler, for messages.
    """

    name: str
    max_records: int
    max_wait: float
    threads: ThreadCalls | None

    async def __call__(self, records: Sequence[Any]) -> Errors:
        """Call the handler; return what it raised, for each record.

        Cancelling this cancels the handler. A handler that has cancelled its own task
        has failed.
        """
        ...


class _Function:
    """A handler as a coroutine function, with a time limit.

    Args:
        timeout: seconds; None for no limit.
    """

    def __init__(self, handler: Callable[[Any], Any], timeout: float | None) -> None:
        self._timeout = timeout
        self.name = describe_function(handler)
        self.threads: ThreadCalls | None = None
        if _is_coroutine_function(handler):
            self._call: Callable[[Any], Awaitable[object]] = handler
        else:
            self.threads = ThreadCalls(handler)
            self._call = self._in_thread
        self.call = self._call if timeout is None else self._in_time

    async def _in_thread(self, argument: Any) -> object:
        assert self.threads is not None, "the handler is a plain function"
        (result,) = await self.threads(argument)
        return await result if inspect.isawaitable(result) else result

    async def _in_time(self, argument: Any) -> object:
        assert self._timeout is not None, "without a limit, this is not called"
        deadline = anyio.current_time() + self._timeout
        returned: object = None
        failure: BaseException | None = None
        with anyio.CancelScope(deadline=deadline):
            try:
                returned = await self._call(argument)
            except anyio.get_cancelled_exc_class() as cancelled:
                failure = cancelled  # shows where the handler waited
                raise
            except Exception as error:
                decides = decision_of(error) is not None
                if decides or anyio.current_time() < deadline:
                    raise
                failure = error
        # Even if the handler has caught its cancellation and returned: what it has
        # done until then is not known.
        if anyio.current_time() >= deadline:
            raise TimeoutError(
                f"the handler took longer than its timeout of {self._timeout:g} s"
            ) from failure
        return returned


class SingleCall:
    """Calls a handler of one record."""

    max_records = 1
    max_wait = 0.0

    def __init__(self, function: _Function) -> None:
        self._call = function.call
        self.threads = function.threads
        self.name = function.name

    async def __call__(self, records: Sequence[Any]) -> Errors:
        try:
            returned = await self._call(records[0])
        except Exception as error:  # noqa: BLE001 (the policy decides about it)
            return [error]
        except BaseException as error:  # noqa: BLE001 (raised again unless asyncio's)
            return [await _as_failure(error)]
        return [None if returned is None else _ran_nothing(returned)]


class BatchCall:
    """Calls a handler of many records."""

    def __init__(self, function: _Function, max_records: int, max_wait: float) -> None:
        self._call = function.call
        self.threads = function.threads
        self.name = function.name
        self.max_records = max_records
        self.max_wait = max_wait

    async def __call__(self, records: Sequence[Any]) -> Errors:
        batch: HandlerBatch[Any, Any] = HandlerBatch(records)
        try:
            returned = await self._call(batch)
        except Exception as error:  # noqa: BLE001 (the policy decides about it)
            return batch.errors(error)
        except BaseException as error:  # noqa: BLE001 (raised again unless asyncio's)
            return batch.errors(await _as_failure(error))
        if returned is None:
            return batch.errors()
        failure = _ran_nothing(returned)
        if failure is None and not _are_errors(returned, len(records)):
            failure = TypeError(
                "a batch handler returns None, or an exception or None for each "
                f"of the {len(records)} records; not {repr_of(returned)}"
            )
        if failure is not None:
            return batch.errors(failure)
        marked = batch.errors()
        return [
            second if first is None else first
            for first, second in zip(marked, cast("Errors", returned), strict=True)
        ]


def handler_call(handler: object, timeout: float | None = None) -> HandlerCall:
    """Return what calls a handler; an attempt fails after `timeout` seconds.

    Raises:
        ConfigurationError: it cannot be called.
    """
    if isinstance(handler, BatchHandler):
        function = _Function(handler.handler, timeout)
        return BatchCall(function, handler.max_records, handler.max_wait)
    return SingleCall(_Function(check_handler(handler), timeout))


def _is_coroutine_function(handler: Callable[[Any], Any]) -> bool:
    call = getattr(handler, "__call__", None)  # noqa: B004 (of an object)
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call)


def _ran_nothing(returned: object) -> Exception | None:
    """Return an error for a result whose code has not run: it must not be accepted."""
    if inspect.isgenerator(returned) or inspect.iscoroutine(returned):
        with suppress(Exception):  # code of the application that had begun
            returned.close()
    elif not (inspect.isasyncgen(returned) or inspect.isawaitable(returned)):
        return None
    kind = type(returned).__name__
    return TypeError(
        f"the handler returned a {kind} instead of awaiting it or iterating over it"
    )


async def _as_failure(error: BaseException) -> Exception:
    """Return a failure if the handler has caused its own cancellation.

    Other exceptions, and cancellations by the worker, are raised again.
    """
    text = await undo_self_cancel(error)
    if text is None:
        raise error
    failure = RuntimeError(text)
    failure.__cause__ = error
    return failure


def _are_errors(returned: object, count: int) -> bool:
    return (
        isinstance(returned, Sequence)
        and len(returned) == count
        and all(each is None or isinstance(each, Exception) for each in returned)
    )
