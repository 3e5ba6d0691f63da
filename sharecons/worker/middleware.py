"""Middleware: an application's coroutine functions that wrap the calls of handlers."""

import inspect
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Generic, Protocol, cast, final

from sharecons.config.callables import is_generator, why_nothing_runs
from sharecons.errors import ConfigurationError
from sharecons.guard import function_name
from sharecons.record import KeyT, Record, ValueT
from sharecons.worker.outcomes import RecordOutcome

__all__ = ["Attempt", "BatchAttempt", "CallNext", "Middleware", "check_middleware"]


class CallNext(Protocol):
    """The second argument of middleware: calls the next middleware, or the handler."""

    def __call__(self) -> Awaitable[None]:
        """Call it; await this once.

        Raises:
            Exception: the handler's exception, even if an inner middleware caught
                it, or the exception of an inner middleware.
            RuntimeError: it was called before, or the middleware has ended.
        """
        ...


@final
class Attempt(Generic[KeyT, ValueT]):
    """One call of a handler with one record, as middleware sees it.

    Middleware reads this object; changes have no effect.

    Attributes:
        record: the record that the handler receives.
        number: the number of the attempt; 1 is the first.
        handler: the name of the handler.
        outcome: the decision about the record. None until the handler has ended, and
            after a cancellation. It is known before it is carried out, and changes if
            other middleware raises another exception, or if the worker stops meanwhile.
            `LockLost` if the handler was cancelled because the record's lock ended. Its
            `error` is None once all middleware has ended.
    """

    __slots__ = ("handler", "number", "outcome", "record")

    def __init__(self, record: Record[KeyT, ValueT], number: int, handler: str) -> None:
        self.record = record
        self.number = number
        self.handler = handler
        self.outcome: RecordOutcome | None = None

    @property
    def records(self) -> tuple[Record[KeyT, ValueT], ...]:
        """The record, as the only one: for middleware of all kinds of handlers."""
        return (self.record,)

    @property
    def attempts(self) -> "tuple[Attempt[KeyT, ValueT], ...]":
        """This attempt, as the only one: for middleware of all kinds of handlers."""
        return (self,)

    def __repr__(self) -> str:
        return (
            f"<Attempt {self.number} of {self.handler}: {self.record!r}, "
            f"outcome {self.outcome!r}>"
        )


@final
class BatchAttempt(Generic[KeyT, ValueT]):
    """One call of a `BatchHandler`, as middleware sees it.

    Attributes:
        attempts: the attempt of each record, with its own number and outcome.
        handler: the name of the handler.
    """

    __slots__ = ("attempts", "handler")

    def __init__(
        self, attempts: tuple[Attempt[KeyT, ValueT], ...], handler: str
    ) -> None:
        self.attempts = attempts
        self.handler = handler

    @property
    def records(self) -> tuple[Record[KeyT, ValueT], ...]:
        """The records that the handler receives, in order."""
        return tuple(attempt.record for attempt in self.attempts)

    def __repr__(self) -> str:
        return f"<BatchAttempt of {self.handler}: {len(self.attempts)} records>"


class Middleware(Protocol):
    """A coroutine function that wraps each call of a handler."""

    def __call__(self, attempt: Any, call_next: CallNext, /) -> Awaitable[object]:
        """Wrap a call: `await call_next()` calls the handler.

        Args:
            attempt: an `Attempt`, or a `BatchAttempt` if the handler is a
                `BatchHandler`.
        """
        ...


def check_middleware(name: str, middleware: object) -> tuple[Middleware, ...]:
    """Return the middleware as a tuple.

    Raises:
        ConfigurationError: it is not a sequence, or one of its elements is not a
            coroutine function with two parameters.
    """
    if isinstance(middleware, str | bytes | Mapping) or not isinstance(
        middleware, Iterable
    ):
        is_function = inspect.isroutine(middleware)
        hint = f"[{function_name(middleware)}]" if is_function else "[...]"
        raise ConfigurationError(
            f"{name} must be a sequence of coroutine functions, not "
            f"{middleware!r:.200}; write {name}={hint}"
        )
    return tuple(
        _checked(f"{name}[{index}]", each) for index, each in enumerate(middleware)
    )


def _checked(name: str, middleware: object) -> Middleware:
    if inspect.isclass(middleware):
        raise ConfigurationError(
            f"{name} is the class {middleware.__name__}; pass an instance of it, "
            f"{middleware.__name__}(...)"
        )
    if not callable(middleware):
        raise ConfigurationError(
            f"{name} must be a coroutine function, `async def trace(attempt, "
            f"call_next)`, not {middleware!r:.200}"
        )
    function = function_name(middleware)
    if is_generator(middleware):
        raise ConfigurationError(
            f"{name}: {function} contains `yield`, so calling it runs none of its "
            "code; write `await call_next()` where the handler is to run"
        )
    if why_nothing_runs(middleware) != "async":
        raise ConfigurationError(
            f"{name}: {function} is a plain function, and must wait until the handler "
            f"has ended; make it a coroutine function, `async def` with "
            "`await call_next()`"
        )
    signature = inspect.signature(middleware)
    try:
        signature.bind(object(), object())
    except TypeError as error:
        raise ConfigurationError(
            f"{name}: {function}{signature} cannot be called with two arguments, the "
            f"attempt and call_next: {error}"
        ) from None
    return cast("Middleware", middleware)
