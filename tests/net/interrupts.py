"""Cancelling a coroutine at each of its awaits."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio

__all__ = ["Interrupted", "interruptions"]

Cancel = Callable[[], None]


class Interrupted:
    """Awaits something, and cancels it when it suspends for the nth time, from 1.

    It passes everything between the coroutine and the event loop on, so that it works
    on asyncio and on trio.
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
        resume, value = inner.send, None
        while True:
            try:
                trap = resume(value)
            except StopIteration as end:
                return end.value
            self.suspended += 1
            if self.suspended == self._step:
                self._cancel()
            try:
                resume, value = inner.send, (yield trap)
            except BaseException as error:
                resume, value = inner.throw, error


async def interruptions(
    attempt: Callable[[Callable[[Awaitable], Awaitable]], Awaitable],
) -> AsyncIterator[int]:
    """Run an attempt repeatedly, and cancel it one suspension later each time.

    The argument of the attempt is a function; the attempt awaits with it whatever this
    cancels. Yields the number of attempts after each cancelled one, and ends after the
    first attempt that finishes before its cancellation.
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
        assert step < 1000, "the attempt never ends"
        yield step
