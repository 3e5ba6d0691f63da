"""A future whose task goes on in the very call that brings the result.

asyncio makes a task's next step a call of its loop's next round. On a busy machine
that round costs a record that comes alone 4 % of all the time it takes: there is
another look at the sockets in it, and somebody else may have the core meanwhile.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any

__all__ = ["ResumableFuture"]


class ResumableFuture(asyncio.Future[bool]):
    """Awaited by one task, once. It is as any other future, but for `resume`."""

    _step: tuple[Callable[[Any], object], Context] | None = None

    def add_done_callback(
        self, fn: Callable[[Any], object], /, *, context: Context | None = None
    ) -> None:
        if context is not None:
            self._step = fn, context  # a task's, which gives its own
        super().add_done_callback(fn, context=context)

    def resume(self, result: bool) -> bool:
        """Set the result and run the task that awaits it, before this returns.

        To be called by the event loop, outside of any task. Tells whether a task went
        on; nothing is done if none could. Raises what ends event loops, if the task
        did: `KeyboardInterrupt` and `SystemExit`.
        """
        if self._step is None or self.done():
            return False
        if asyncio.current_task(self.get_loop()) is not None:
            return False
        step, context = self._step
        self.remove_done_callback(step)
        self.set_result(result)
        try:
            context.run(step, self)
        except RuntimeError:
            # Its own errors stay in the task: this one has not begun its step, for
            # whoever called us is in the task's context.
            self.get_loop().call_soon(step, self, context=context)
            return False
        return True
