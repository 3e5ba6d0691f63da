"""Calls a handler within middleware, and decides what the attempt failed with.

Each middleware is a layer; its `call_next()` runs the next layer, the last one is the
handler. A layer raises what the attempt has failed with so far, even if its middleware
has caught it, so that an outer transaction never commits the work of a failed handler:

| the layer within | the middleware | the layer raises |
|---|---|---|
| succeeded | returns | nothing |
| succeeded, or was not called | raises | the middleware's exception |
| failed | returns, or raises the same | the exception of the layer within |
| failed | raises another | the middleware's exception |
| was not called, or not awaited | returns | RuntimeError |
| was cancelled by the worker | returns | the cancellation |
| was cancelled by the middleware | returns | RuntimeError |

Outside of all layers, a cancellation by the worker hides what middleware raises.
"""

import inspect
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, cast, final

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from sharecons.guard import exceptions_of, function_name, guarded, is_a
from sharecons.net.io.event_loop import Clock
from sharecons.worker.failure_texts import FailureTexts, has_texts, have_failed
from sharecons.worker.handler_function import took_too_long, within
from sharecons.worker.handlers import Errors, HandlerCall, as_failure
from sharecons.worker.machine.decisions import Decisions
from sharecons.worker.machine.item import Call, WorkItem
from sharecons.worker.middleware import Attempt, BatchAttempt, Middleware
from sharecons.worker.outcomes import (
    Accepted,
    DeadLettered,
    Moved,
    RecordOutcome,
    Rejected,
    Released,
    RetryAfter,
)
from sharecons.worker.self_cancel import undo_self_cancel

__all__ = ["MiddlewareCall", "MiddlewareChain"]

Chances = Mapping[WorkItem, float]

WITH_ERROR: Final = (RetryAfter, Moved, Rejected, DeadLettered, Released)
"""The outcomes that have the exception of an attempt."""


@final
class MiddlewareChain:
    """The middleware of a worker.

    Args:
        middleware: the first one is the outermost.
        decisions: decide the outcomes that middleware sees.
        texts: make the texts that these outcomes have.
        chance: returns random numbers from 0.0 to 1.0.
    """

    def __init__(
        self,
        middleware: Sequence[Middleware],
        decisions: Decisions,
        texts: FailureTexts,
        clock: Clock,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.middleware = middleware
        self.chance = chance
        self.texts = texts
        self._decisions = decisions
        self._clock = clock

    def begin(self, handler: HandlerCall, call: Call) -> "MiddlewareCall":
        """Return a call that has not begun."""
        return MiddlewareCall(self, handler, call)

    def decide(self, item: WorkItem, error: Exception, chance: float) -> RecordOutcome:
        """Return the outcome of a record if its attempt fails with `error` now."""
        outcome = self._decisions.on_error(item, error, self._clock(), chance)
        return self._decisions.as_carried_out(item, outcome)


@final
class MiddlewareCall:
    """One call of a handler, within middleware.

    Attributes:
        chances: the random numbers by which the outcomes that middleware saw were
            decided. The outcomes that are carried out have the same; None if no
            attempt failed.
    """

    def __init__(
        self, chain: MiddlewareChain, handler: HandlerCall, call: Call
    ) -> None:
        self._chain = chain
        self._call = call
        self._items = call.items
        self._run = handler.begin([item.argument for item in call.items])
        self._timeout = handler.timeout
        self._deadline: float | None = None
        # A call of `Attempt[Any, Any]` would take twice as long.
        self._attempts: tuple[Attempt[Any, Any], ...] = tuple(
            [Attempt(item.argument, item.attempt, handler.name) for item in call.items]
        )
        self._argument: Attempt[Any, Any] | BatchAttempt[Any, Any] = self._attempts[0]
        if handler.takes_batches:
            self._argument = BatchAttempt(self._attempts, handler.name)
        self._attempt_of: dict[WorkItem, Attempt[Any, Any]] | None = None
        self._previewed: Errors | None = None
        self._raised_by_handler: Exception | None = None
        self.chances: Chances | None = None

    async def __call__(self) -> Errors:
        """Call the outermost middleware; return the error of each record."""
        failure: Exception | None = None
        try:
            if self._timeout is None:
                await self._layer(0)
            else:
                self._deadline = anyio.current_time() + self._timeout
                await within(self._timeout, self._layer, 0)
        except Exception as error:  # noqa: BLE001 (the policy decides about it)
            failure = error
        except BaseException as error:  # noqa: BLE001 (raised again unless asyncio's)
            failure = await as_failure(error)
        try:
            if failure is not self._raised_by_handler:
                await checkpoint_if_cancelled()
            if failure is not None:
                await self._chain.texts.make(self._call, self._run.errors(failure))
                self._preview(failure)
            return self._run.errors(failure)
        finally:
            failure = None  # its traceback refers to this frame

    def end(self) -> None:
        """Forget the records and the exceptions: tracebacks refer to this call."""
        self._run.end()
        self._items = []
        self._attempt_of = self._previewed = self._raised_by_handler = None
        self.chances = None
        for attempt in self._attempts:
            if isinstance(outcome := attempt.outcome, WITH_ERROR):
                attempt.outcome = outcome._replace(error=None)

    def set_outcome(self, item: WorkItem, outcome: RecordOutcome) -> None:
        """Show the outcome that is carried out, for example `LockLost`.

        A record that had an outcome before the handler was called has no attempt.
        """
        if len(self._items) == 1:
            attempt = self._attempts[0] if item is self._items[0] else None
        else:
            if self._attempt_of is None:
                pairs = zip(self._items, self._attempts, strict=True)
                self._attempt_of = dict(pairs)
            attempt = self._attempt_of.get(item)
        if attempt is not None:
            attempt.outcome = outcome

    async def _layer(self, index: int) -> None:
        """Run a middleware and the layers within; raise as the table above says."""
        if index == len(self._chain.middleware):
            await self._call_handler()
            return
        middleware = self._chain.middleware[index]
        call_next = _CallNext(self._layer, index + 1)
        failure: Exception | None = None
        try:
            returned = await middleware(self._argument, call_next)
        except Exception as error:  # noqa: BLE001 (it is raised below)
            failure = _unwrapped(error, call_next.error)
        except BaseException:
            if call_next.is_running:  # in a task that was not cancelled
                with anyio.CancelScope(shield=True):
                    await call_next.wait_until_ended()
            self._on_cancelled()
            call_next.error = None
            raise
        else:
            _close(returned)
        finally:
            call_next.is_closed = True
        if call_next.is_running:
            await call_next.wait_until_ended()
            if failure is None:
                failure = _returned_early(middleware)
        if failure is None and not call_next.has_succeeded:
            failure = await _hidden_failure(middleware, call_next)
        try:
            if failure is not None:
                await self._make_texts(failure)
                self._preview(failure)
                raise failure
        finally:
            failure = call_next.error = None  # tracebacks refer to this frame

    async def _call_handler(self) -> None:
        try:
            await self._run()
        except Exception as error:
            self._raised_by_handler = error
            await self._make_texts(error)
            self._preview(error)
            raise
        except BaseException:
            self._on_cancelled()
            raise
        if have_failed(self._run.errors(None)):
            await self._make_texts(None)
        self._preview(None)

    async def _make_texts(self, failure: Exception | None) -> None:
        """Make the texts of errors; after the timeout, `__call__` makes them."""
        try:
            if not self._has_timed_out:
                await self._chain.texts.make(self._call, self._run.errors(failure))
        except anyio.get_cancelled_exc_class():
            if not self._has_timed_out:
                raise

    @property
    def _has_timed_out(self) -> bool:
        return self._deadline is not None and anyio.current_time() >= self._deadline

    def _on_cancelled(self) -> None:
        if self._has_timed_out:
            assert self._timeout is not None, "it has a deadline"
            self._preview(took_too_long(self._timeout))
            return
        self._previewed = None
        for item, attempt in zip(self._items, self._attempts, strict=True):
            if item.is_running:
                attempt.outcome = None

    def _preview(self, failure: Exception | None) -> None:
        """Show the outcomes that the records have if nothing else happens.

        Records that have an outcome already keep it.
        """
        errors = self._run.errors(failure)
        before = self._previewed
        self._previewed = errors
        for index, (item, error) in enumerate(zip(self._items, errors, strict=True)):
            if not item.is_running or (before and before[index] is error):
                continue
            attempt = self._attempts[index]
            if error is None:
                attempt.outcome = Accepted()
                continue
            if not has_texts(error):  # cancelled before they were made
                attempt.outcome = None
                continue
            if self.chances is None:
                self.chances = {each: self._chain.chance() for each in self._items}
            attempt.outcome = self._chain.decide(item, error, self.chances[item])


@final
class _CallNext:
    """The `call_next` of one middleware.

    Attributes:
        error: its exception.
        has_begun, is_running: whether it was called, and whether it has not ended.
        is_closed: the middleware has ended.
    """

    __slots__ = (
        "_ended",
        "_index",
        "_layer",
        "error",
        "has_begun",
        "is_closed",
        "is_running",
    )

    def __init__(self, layer: Callable[[int], Awaitable[None]], index: int) -> None:
        self._layer = layer
        self._index = index
        self._ended: anyio.Event | None = None
        self.error: BaseException | None = None
        self.has_begun = self.is_running = self.is_closed = False

    @property
    def has_succeeded(self) -> bool:
        """True if it was called, and has raised nothing."""
        return self.has_begun and self.error is None

    async def __call__(self) -> None:
        if self.has_begun:
            raise RuntimeError(
                "call_next() was called twice; a handler is called once in an attempt: "
                "raise Retry for another attempt"
            )
        if self.is_closed:
            raise RuntimeError("call_next() was called after its middleware had ended")
        self.has_begun = self.is_running = True
        try:
            await self._layer(self._index)
        except BaseException as error:
            self.error = error
            raise
        finally:
            self.is_running = False
            if self._ended is not None:
                self._ended.set()

    async def wait_until_ended(self) -> None:
        """Wait for a call in another task."""
        self._ended = anyio.Event()
        await self._ended.wait()


async def _hidden_failure(
    middleware: Middleware, call_next: _CallNext
) -> Exception | None:
    """Return the failure of an attempt whose middleware has returned, or None.

    Raises:
        BaseException: the middleware has hidden a cancellation by the worker, or an
            exception that ends the program.
    """
    name = function_name(middleware)
    if not call_next.has_begun:
        return RuntimeError(
            f"the middleware {name} has ended without `await call_next()`, so the "
            "handler was not called; raise Retry, Reject or DeadLetter to decide about "
            "a record without its handler"
        )
    error = call_next.error
    if error is None or is_a(error, Exception):
        return cast("Exception | None", error)
    if await undo_self_cancel(error) is None:
        await checkpoint_if_cancelled()
        try:
            raise error
        finally:
            error = None  # its traceback refers to this frame
    return RuntimeError(
        f"the handler was cancelled, and the middleware {name} has ended without an "
        "exception; the record is not processed"
    )


def _returned_early(middleware: Middleware) -> Exception:
    return RuntimeError(
        f"the middleware {function_name(middleware)} has ended before "
        "call_next(); write `await call_next()`"
    )


def _unwrapped(error: Exception, within: BaseException | None) -> Exception:
    """Return the exception of the layer within if a task group has wrapped it."""
    each: BaseException = error
    while len(exceptions := exceptions_of(each)) == 1:
        each = exceptions[0]
    is_same = each is within and is_a(each, Exception)
    return cast("Exception", each) if is_same else error


def _close(returned: object) -> None:
    """Close a coroutine that a middleware returned instead of awaiting it."""

    def close() -> None:
        if inspect.iscoroutine(returned):
            returned.close()

    guarded(close, lambda _: None)  # it is not what the attempt has failed with
