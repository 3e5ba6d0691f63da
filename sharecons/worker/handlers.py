"""The application's handlers, called in one way: records in, an error or None for each.

A handler is a coroutine function or a plain function with one record as its argument,
or a `BatchHandler`. Plain functions run in threads. `middleware_chain` calls handlers
within middleware.
"""

from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Any, Final, Generic, Protocol, final, overload

from anyio.lowlevel import checkpoint_if_cancelled

from sharecons.config.validation import check_count, check_number
from sharecons.error_text import repr_of
from sharecons.guard import guarded, is_a, raise_error, type_name
from sharecons.plain_texts import is_plain
from sharecons.record import KeyT, Record, ValueT
from sharecons.worker.handler_checks import check_handler
from sharecons.worker.handler_function import HandlerFunction
from sharecons.worker.handler_results import misused
from sharecons.worker.self_cancel import undo_self_cancel
from sharecons.worker.threads import ThreadCalls

__all__ = [
    "BatchCall",
    "BatchHandler",
    "Errors",
    "HandlerBatch",
    "HandlerCall",
    "HandlerRun",
    "SingleCall",
    "as_failure",
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
        self._indexes: dict[int, int] | None = None

    def fail(self, record: Record[KeyT, ValueT], error: Exception) -> None:
        """Fail a record of the batch, as if a handler had raised `error` for it.

        `error` can be a `Retry`, `Reject` or `DeadLetter`.

        Raises:
            ValueError: the record is not of this batch.
            TypeError: `error` is not an exception.
        """
        if not isinstance(error, Exception):
            raise TypeError(
                f"batch.fail takes an exception for the record, not {repr_of(error)}"
            )
        if self._indexes is None:
            # By identity: deserialized values can define equality, and raise.
            indexes = {id(each): index for index, each in enumerate(self._records)}
            self._indexes = indexes
        index = self._indexes.get(id(record))
        if index is None:
            raise ValueError(f"{repr_of(record)} is not a record of this batch")
        self._errors[index] = error

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

    def end(self) -> None:
        """Forget the errors: their tracebacks refer to this batch."""
        self._errors.clear()

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


class HandlerRun(Protocol):
    """One call of a handler, which middleware is called around."""

    async def __call__(self) -> None:
        """Call the handler, without a time limit; raise what it raises."""
        ...

    def errors(self, error: Exception | None) -> Errors:
        """Return each record's error.

        Args:
            error: of the records that the handler has not marked.
        """
        ...

    def end(self) -> None:
        """Forget the errors: their tracebacks refer to what the handler refers to."""
        ...


class HandlerCall(Protocol):
    """Calls a handler.

    Attributes:
        name: the name of the handler, for messages.
        takes_batches: it is a `BatchHandler`.
        max_records: how many records a call takes.
        max_wait: seconds to wait for as many.
        timeout: seconds for one call; None for no limit.
        threads: calls the handler, if it is a plain function.
    """

    name: str
    takes_batches: bool
    max_records: int
    max_wait: float
    timeout: float | None
    threads: ThreadCalls | None

    async def __call__(self, records: Sequence[Any]) -> Errors:
        """Call the handler; return what it raised, for each record.

        Cancelling this cancels the handler. A handler that has cancelled its own task
        has failed.
        """
        ...

    def begin(self, records: Sequence[Any]) -> HandlerRun:
        """Return a call that has not begun, for middleware."""
        ...


class SingleCall:
    """Calls a handler of one record."""

    takes_batches = False
    max_records = 1
    max_wait = 0.0

    def __init__(self, function: HandlerFunction) -> None:
        self._call = function.call
        self._call_without_limit = function.call_without_limit
        self.timeout = function.timeout
        self.threads = function.threads
        self.name = function.name

    async def __call__(self, records: Sequence[Any]) -> Errors:
        try:
            returned = await self._call(records[0])
            return [None if returned is None else misused(returned)]
        except Exception as error:  # noqa: BLE001 (the policy decides about it)
            return [error]
        except BaseException as error:  # noqa: BLE001 (raised again unless asyncio's)
            return [await as_failure(error)]

    def begin(self, records: Sequence[Any]) -> HandlerRun:
        return _SingleRun(self._call_without_limit, records[0])


class _SingleRun:
    """A call with one record."""

    def __init__(self, call: Callable[[Any], Awaitable[object]], record: Any) -> None:
        self._call = call
        self._record = record

    async def __call__(self) -> None:
        returned = await self._call(self._record)
        raise_error(None if returned is None else misused(returned))

    def errors(self, error: Exception | None) -> Errors:
        return [error]

    def end(self) -> None:
        pass


class BatchCall:
    """Calls a handler of many records."""

    takes_batches = True

    def __init__(
        self, function: HandlerFunction, max_records: int, max_wait: float
    ) -> None:
        self._call = function.call
        self._call_without_limit = function.call_without_limit
        self.timeout = function.timeout
        self.threads = function.threads
        self.name = function.name
        self.max_records = max_records
        self.max_wait = max_wait

    async def __call__(self, records: Sequence[Any]) -> Errors:
        run = _BatchRun(self._call, records)
        try:
            await run()
        except Exception as error:  # noqa: BLE001 (the policy decides about it)
            return run.errors(error)
        except BaseException as error:  # noqa: BLE001 (raised again unless asyncio's)
            return run.errors(await as_failure(error))
        else:
            return run.errors(None)
        finally:
            run.end()

    def begin(self, records: Sequence[Any]) -> HandlerRun:
        return _BatchRun(self._call_without_limit, records)


class _BatchRun:
    """A call with many records."""

    def __init__(
        self, call: Callable[[Any], Awaitable[object]], records: Sequence[Any]
    ) -> None:
        self._call = call
        self._batch: HandlerBatch[Any, Any] = HandlerBatch(records)
        self._returned: Errors | None = None

    async def __call__(self) -> None:
        returned = await self._call(self._batch)
        if returned is None:
            return
        raise_error(misused(returned))
        self._returned = _errors_in(returned, len(self._batch))
        if self._returned is None:
            is_quick = is_plain(returned)
            text = repr_of(returned) if is_quick else f"a {type_name(returned)}"
            raise TypeError(
                "a batch handler returns None, or an exception or None for each "
                f"of the {len(self._batch)} records; not {text}"
            )

    def errors(self, error: Exception | None) -> Errors:
        marked = self._batch.errors()
        if self._returned is not None:
            marked = [
                second if first is None else first
                for first, second in zip(marked, self._returned, strict=True)
            ]
        return [error if each is None else each for each in marked]

    def end(self) -> None:
        self._batch.end()
        self._returned = None


def handler_call(handler: object, timeout: float | None = None) -> HandlerCall:
    """Return what calls a handler; an attempt fails after `timeout` seconds.

    Raises:
        ConfigurationError: it cannot be called.
    """
    if isinstance(handler, BatchHandler):
        function = HandlerFunction(handler.handler, timeout)
        return BatchCall(function, handler.max_records, handler.max_wait)
    return SingleCall(HandlerFunction(check_handler(handler), timeout))


async def as_failure(error: BaseException) -> Exception:
    """Return a failure if the handler has caused its own cancellation.

    Other exceptions, and cancellations by the worker, are raised again.
    """
    if is_a(error, BaseExceptionGroup):
        # On trio, a cancelled nursery raises this if its tasks raise meanwhile.
        await checkpoint_if_cancelled()
    text = await undo_self_cancel(error)
    if text is None:
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame
    failure = RuntimeError(text)
    failure.__cause__ = error
    return failure


def _errors_in(returned: object, count: int) -> Errors | None:
    """Return the errors that a batch handler returned; None for anything else."""

    def read() -> Errors | None:
        if not isinstance(returned, Sequence) or len(returned) != count:
            return None
        errors = tuple(islice(returned, count + 1))
        are_errors = all(each is None or is_a(each, Exception) for each in errors)
        return errors if are_errors and len(errors) == count else None

    return guarded(read, lambda _: None)
