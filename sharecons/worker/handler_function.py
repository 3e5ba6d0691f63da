"""A handler as a coroutine function, with a time limit; plain functions in threads."""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, final

import anyio

from sharecons.guard import function_name, guarded
from sharecons.worker.outcomes import decision_of
from sharecons.worker.threads import ThreadCalls

__all__ = ["HandlerFunction", "took_too_long", "within"]


@final
class HandlerFunction:
    """A handler as a coroutine function.

    Args:
        timeout: seconds for `call`; None for no limit.
    """

    def __init__(self, handler: Callable[[Any], Any], timeout: float | None) -> None:
        self.timeout = timeout
        self.name = function_name(handler)
        self.threads: ThreadCalls | None = None
        if _is_coroutine_function(handler):
            self.call_without_limit: Callable[[Any], Awaitable[object]] = handler
        else:
            self.threads = ThreadCalls(handler)
            self.call_without_limit = self._in_thread
        self.call = self.call_without_limit
        if timeout is not None:
            self.call = partial(within, timeout, self.call_without_limit)

    async def _in_thread(self, argument: Any) -> object:
        assert self.threads is not None, "the handler is a plain function"
        (result,) = await self.threads(argument)
        must_await = guarded(lambda: inspect.isawaitable(result), lambda _: False)
        return await result if must_await else result


async def within(
    timeout: float, call: Callable[[Any], Awaitable[object]], argument: Any
) -> object:
    """Call a coroutine function; cancel it after `timeout` seconds.

    Raises:
        TimeoutError: it took longer, and did not raise a decision.
    """
    deadline = anyio.current_time() + timeout
    returned: object = None
    failure: BaseException | None = None
    with anyio.CancelScope(deadline=deadline):
        try:
            returned = await call(argument)
        except anyio.get_cancelled_exc_class() as cancelled:
            failure = cancelled  # shows where the handler waited
            raise
        except Exception as error:
            decides = decision_of(error) is not None
            if decides or anyio.current_time() < deadline:
                raise
            failure = error
    # Even if the handler has caught its cancellation and returned: it can have
    # skipped any part of its work.
    try:
        if anyio.current_time() >= deadline:
            raise took_too_long(timeout) from failure
    finally:
        failure = None  # its traceback refers to this frame
    return returned


def took_too_long(timeout: float) -> TimeoutError:
    """Return the error of a call that its timeout has ended."""
    return TimeoutError(f"the handler took longer than its timeout of {timeout:g} s")


def _is_coroutine_function(handler: Callable[[Any], Any]) -> bool:
    call = getattr(handler, "__call__", None)  # noqa: B004 (of an object)
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call)
