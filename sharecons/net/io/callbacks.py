"""Exceptions that callbacks of the application raise.

A callback's exception must not propagate unchanged: StopIteration would end a
coroutine, StopAsyncIteration a loop, CancelledError a task. So the library raises one
of its own errors, with the callback's exception as `__cause__`. This includes
CancelledError: a plain function does not await, so nothing cancels it. Only
KeyboardInterrupt and SystemExit, which end the program, are raised unchanged.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from sharecons.errors import CallbackError
from sharecons.guard import flattened, guarded, is_a
from sharecons.net.io.event_loop import in_trio

__all__ = ["is_cancellation", "log_unraised", "run_callback"]


def run_callback(
    name: str, callback: Callable[[Any], object], argument: Any
) -> CallbackError | None:
    """Call a callback; return the error for the exception that it raised, if any."""

    def failure(cause: BaseException) -> CallbackError:
        error = CallbackError(name, cause)
        error.__cause__ = cause
        return error

    def call() -> None:
        callback(argument)

    return guarded(call, failure)


def is_cancellation(error: BaseException) -> bool:
    """Return whether an exception that an `await` raised ends the running task.

    True for GeneratorExit, and for CancelledError if the task was cancelled. A callback
    can raise another CancelledError, for example of a task that it waits for.
    """
    if is_a(error, GeneratorExit):
        return True
    if in_trio():
        cancelled = sys.modules["trio"].Cancelled
        return any(is_a(each, cancelled) for each in flattened(error))
    task = asyncio.current_task()
    return (
        is_a(error, asyncio.CancelledError)
        and task is not None
        and task.cancelling() > 0
    )


def log_unraised(log: Any, error: Exception) -> None:
    """Log an error that no call of the application raises, because it has closed."""
    if isinstance(error, CallbackError):
        log.error(
            "a callback raised after the last read",
            callback=error.callback,
            exc_info=error,
        )
    else:
        log.warning("not raised before the consumer was closed", error=str(error))
