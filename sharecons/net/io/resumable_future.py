"""A future whose task goes on in the very call that brings the result.

asyncio makes a task's next step a call of its loop's next round. On a busy machine
that round costs a record that comes alone 4 % of all the time it takes: there is
another look at the sockets in it, and somebody else may have the core meanwhile.

asyncio's own futures would do for that, but what they are asked on the way is asked of
Python. This one is compiled; it has what tasks ask of a future that is not asyncio's
(`asyncio.isfuture`), and no more.
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
    """Awaited by one task, once; whether it was woken in time is its result.

    `raises` says that the event loop ends of what its calls raise, wherever they were
    called from; else it is raised in a call of its own.
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
        """Set the result; whoever awaits it goes on in a call of the event loop's."""
        if not self._done:
            self._schedule()  # raises if the loop is closed, and changes nothing then
            self._done, self._result = True, result

    def resume(self) -> bool:
        """As `wake(True)`, but the task that awaits it runs before this returns.

        To be called by the event loop, outside of any task. Tells whether a task went
        on; nothing is done if none could. Raises what ends event loops, if the task
        did: `KeyboardInterrupt` and `SystemExit`.
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
            # Its own errors stay in the task: this one has not begun its step, for
            # whoever called us is in the task's context.
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

    # What its task asks, and who cancels that.

    def __await__(self) -> Generator[Any, Any, bool]:
        return cast("Generator[Any, Any, bool]", self)  # as far as awaiting goes

    def __next__(self) -> "ResumableFuture":
        if self._done:
            raise StopIteration(self.result())
        self._asyncio_future_blocking = True
        return self

    def done(self) -> bool:
        """Return whether it was woken or cancelled; anyio and debuggers ask for it."""
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
