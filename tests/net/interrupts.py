"""Cancelling a coroutine at each of its awaits."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio

__all__ = ["Interrupted", "interruptions"]

Cancel = Callable[[], None]


class Interrupted:
    """Awaits something; cancels when it suspends for the given time, from 1 on.

    This stands between the coroutine and the event loop and passes on what one says
    to the other, so that it works alike on asyncio and trio.
    """

    def __init__(self, awaitable, step, cancel):
        self._awaitable = awaitable
        self._step = step
        self._cancel = cancel
        self.suspended = 0

    @property
    def reached(self):
        return self.suspended >= self._step

    def __await__(self):
        inner = self._awaitable.__await__()
        go_on, what = inner.send, None
        while True:
            try:
                trap = go_on(what)
            except StopIteration as end:
                return end.value
            self.suspended += 1
            if self.suspended == self._step:
                self._cancel()
            try:
                go_on, what = inner.send, (yield trap)
            except BaseException as error:
                go_on, what = inner.throw, error


async def interruptions(
    attempt: Callable[[Callable[[Awaitable], Awaitable]], Awaitable],
) -> AsyncIterator[int]:
    """Run an attempt again and again, cancelled one suspension later each time.

    The attempt is given a function through which it awaits what is to be cancelled.
    After each attempt that was cancelled this yields how many there were; it ends with
    the attempt that was through before the cancellation was due.
    """
    for step in itertools.count(1):
        reached = False

        async def interrupted(awaitable, step=step):
            nonlocal reached
            with anyio.CancelScope() as scope:
                watched = Interrupted(awaitable, step, scope.cancel)
                try:
                    return await watched
                finally:
                    reached = watched.reached

        await attempt(interrupted)
        if not reached:
            return
        assert step < 1000, "it never ends"
        yield step
