"""A future that can run its task in the call that sets the result.

asyncio schedules a task's next step for the next iteration of the event loop. On a
busy machine that costs a single record 4 % of its latency: the iteration polls the
sockets again, and another process may use the core meanwhile.

asyncio's own futures could do this too, but each attribute access would leave compiled
code. This class is compiled. It has only what a task needs of a future that is not
asyncio's (`asyncio.isfuture`).
"""

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any, cast, final

__all__ = ["ResumableFuture"]


def _raise(error: BaseException) -> None:
    raise error


@final
class ResumableFuture:
    """A future for one task and one wait; its result is True if woken in time.

    Args:
        propagate_exits: raise KeyboardInterrupt and SystemExit in `resume`, because
            the event loop ends by any exception of its callbacks. Otherwise raise
            them in a callback of their own.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, propagate_exits: bool
    ) -> None:
        self._asyncio_future_blocking = False
        self._loop = loop
        self._propagate_exits = propagate_exits
        self._done = False
        self._result = False
        self._cancelled: asyncio.CancelledError | None = None
        self._step: Callable[[Any], object] | None = None
        self._context: Context | None = None

    def wake(self, result: bool) -> None:
        """Set the result and schedule the waiting task."""
        if not self._done:
            self._schedule()  # raises, and changes nothing, if the loop is closed
            self._done, self._result = True, result

    def resume(self) -> bool:
        """Set the result to True and run the waiting task before returning.

        Call this from the event loop, outside of any task.

        Returns:
            Whether the task ran; if not, nothing has changed.

        Raises:
            KeyboardInterrupt, SystemExit: raised by the task.
        """
        step, context = self._step, self._context
        if step is None or context is None or self._done:
            return False
        if asyncio.current_task(self._loop) is not None:
            return False
        self._done = self._result = True
        try:
            context.run(step, self)
        except RuntimeError:
            # The task keeps its own errors. This one is of `context.run`: the caller
            # is in the task's context already, and the step has not begun.
            self._schedule()
            return False
        except (KeyboardInterrupt, SystemExit) as error:
            if self._propagate_exits:
                raise
            self._loop.call_soon(_raise, error)
        return True

    def _schedule(self) -> None:
        if self._step is not None:
            self._loop.call_soon(self._step, self, context=self._context)

    # Called by the task, and to cancel it.

    def __await__(self) -> Generator[Any, Any, bool]:
        return cast("Generator[Any, Any, bool]", self)  # enough for `await`

    def __next__(self) -> "ResumableFuture":
        if self._done:
            raise StopIteration(self.result())
        self._asyncio_future_blocking = True
        return self

    def done(self) -> bool:
        """Return whether it was woken or cancelled; anyio and debuggers call this."""
        return self._done

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def add_done_callback(
        self, fn: Callable[[Any], object], *, context: Context | None = None
    ) -> None:
        self._step, self._context = fn, context
        if self._done:
            self._schedule()

    def cancel(self, msg: Any | None = None) -> bool:
        if self._done:
            return False
        self._schedule()
        self._done = True
        self._cancelled = (
            asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg)
        )
        return True

    def result(self) -> bool:
        if self._cancelled is not None:
            raise self._cancelled
        return self._result
