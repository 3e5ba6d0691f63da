"""Distinguish a handler that cancels its own task from a worker that ends.

On asyncio, any code can cancel the task that it runs in, for example by a time limit of
its own. The tasks of a worker run many handlers, so this must end the call only, and a
time limit that the handler has left behind must not reach the handler after it.
"""

import asyncio
import math
import sys
from typing import Final, final

import anyio
from anyio.lowlevel import checkpoint

from sharecons.guard import is_a
from sharecons.net.background import current_task

__all__ = ["SlotTask", "undo_self_cancel"]

ROUNDS: Final = 3
"""Rounds of the event loop in which a loop that ends cancels all of its tasks."""


async def undo_self_cancel(error: BaseException) -> str | None:
    """Return how the caller's task was cancelled by code that runs in it, or None.

    The task then goes on. None means that the exception is not a cancellation, or that
    a cancel scope or the end of the event loop has caused it: raise it again.
    """
    if not is_a(error, anyio.get_cancelled_exc_class()) or _in_cancelled_scope():
        return None
    task = current_task()
    if not isinstance(task, asyncio.Task) or not task.cancelling():
        return "the handler awaited a task that was cancelled"
    while task.cancelling():
        task.uncancel()
    for _ in range(ROUNDS):
        await checkpoint()  # raises if the worker's tasks are cancelled as well
    return "the handler cancelled its own task"


@final
class SlotTask:
    """The caller's task, before its first call of a handler.

    After a call, a timer that refers to it, for example, can cancel a later one.
    Counting the references takes 0.1 us; a task for each call would take 23 us.
    """

    def __init__(self) -> None:
        task = current_task()  # trio's cannot be cancelled
        self._task = task if isinstance(task, asyncio.Task) else None
        self._references = sys.getrefcount(task)

    @property
    def is_clean(self) -> bool:
        """True if nothing that a handler has left behind cancels the task."""
        task = self._task
        return task is None or not (
            task.cancelling() or sys.getrefcount(task) > self._references
        )


def _in_cancelled_scope() -> bool:
    return anyio.current_effective_deadline() == -math.inf
