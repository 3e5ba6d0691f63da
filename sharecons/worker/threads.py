"""Calls plain functions in threads, and counts the threads that do not end.

A thread cannot be cancelled. If the call is, its thread is abandoned: it goes on until
the function returns, and its result is ignored. In the function,
`anyio.from_thread.check_cancelled()` then raises, and `record.held` becomes False once
the lock is lost.

An abandoned thread counts for the worker's concurrency, so that a worker whose handlers
hang does not start more and more threads.
"""

import math
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import takewhile
from traceback import walk_stack
from types import TracebackType
from typing import Any, Final, final

import anyio
from anyio import to_thread

from sharecons.error_text import Frame, application_line, repr_of
from sharecons.guard import raise_error
from sharecons.net.io.event_loop import Clock, call_soon_function

__all__ = ["AbandonedThread", "ThreadCalls", "ThreadLog", "thread_logs"]

REPORT_INTERVAL: Final = 60.0

SOON: Final = 0.5
"""Seconds in which a thread that checks for its cancellation ends, without a line."""


@final
class AbandonedThread:
    """One call in a thread.

    Attributes:
        argument: the function's argument: a record or a batch.
        began: when it was called, on the clock of `anyio.current_time()`.
        since: when the call was cancelled, on this clock.
    """

    def __init__(
        self, function: Callable[[Any], Any], argument: Any, began: float
    ) -> None:
        self._function = function
        self.argument = argument
        self.began = began
        self.since = 0.0
        self._ident: int | None = None
        self._has_ended = False
        self._on_end: Callable[[], None] | None = None
        self._raised: BaseException | None = None

    # Each thread writes its own attribute first and then reads the other one's, so
    # that at least one of them sees both.

    def run(self) -> tuple[Any]:
        """Call the function, unless it was abandoned before; runs in the thread.

        The result is wrapped, because trio does not let a thread return a coroutine.
        """
        self._ident = threading.get_ident()
        try:
            if self._on_end is not None:
                return (None,)
            return (self._function(self.argument),)
        except BaseException as error:  # noqa: BLE001 (raised in the event loop)
            # Frames of anyio and trio that raise or return it would refer to it.
            self._raised = error
            return (None,)
        finally:
            self._has_ended = True
            if self._on_end is not None:
                self._raised = None
                self._on_end()

    def take_raised(self) -> BaseException | None:
        """Return what the function raised, and forget it."""
        raised, self._raised = self._raised, None
        return raised

    def abandon(self, on_end: Callable[[], None]) -> bool:
        """Call `on_end` in the thread once it ends; return False if it does not run."""
        self._on_end = on_end
        if self._has_ended:
            self._raised = None
            return False
        return self._ident is not None

    def traceback(self) -> TracebackType | None:
        """Return where the thread is now; None if it does not run the function."""
        found: TracebackType | None = None
        for frame, line in self._frames():
            found = TracebackType(found, frame, frame.f_lasti, line)
        return found

    def line(self) -> str | None:
        """Return the line of the application where the thread is now."""
        return application_line(self._frames())

    def _frames(self) -> list[Frame]:
        """Return the frames of the function and of what it calls, innermost first."""
        frame = sys._current_frames().get(self._ident or 0)
        if frame is None or self._has_ended:
            return []
        own = AbandonedThread.run.__code__
        return [*takewhile(lambda each: each[0].f_code is not own, walk_stack(frame))]


@final
class ThreadCalls:
    """A coroutine function that calls a plain one in threads.

    Attributes:
        abandoned: the threads whose calls were cancelled and that have not ended.
        on_changed: called in the event loop when `abandoned` has changed.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self.abandoned: dict[AbandonedThread, None] = {}
        self.on_changed: Callable[[AbandonedThread], None] = lambda thread: None
        # The worker's slots limit the number of calls.
        self._limiter: anyio.CapacityLimiter | None = None

    async def __call__(self, argument: Any) -> tuple[Any]:
        """Call the function; return a tuple with its result."""
        if self._limiter is None:  # it belongs to the event loop of the first call
            self._limiter = anyio.CapacityLimiter(math.inf)
        thread = AbandonedThread(self._function, argument, anyio.current_time())
        try:
            returned = await to_thread.run_sync(
                thread.run, limiter=self._limiter, abandon_on_cancel=True
            )
        except anyio.get_cancelled_exc_class() as cancelled:
            _append(cancelled, thread.traceback())  # shows where the handler hangs
            self._abandon(thread)
            raise
        raise_error(thread.take_raised())
        return returned

    def _abandon(self, thread: AbandonedThread) -> None:
        schedule = call_soon_function()
        thread.since = anyio.current_time()

        def on_end() -> None:
            with suppress(RuntimeError):  # the event loop has ended before the thread
                schedule(lambda: self._forget(thread))

        # First, as `on_end` removes it: the thread can end at any moment.
        self.abandoned[thread] = None
        if thread.abandon(on_end):
            self.on_changed(thread)
        else:
            del self.abandoned[thread]

    def _forget(self, thread: AbandonedThread) -> None:
        if thread in self.abandoned:
            del self.abandoned[thread]
            self.on_changed(thread)


def _append(error: BaseException, further: TracebackType | None) -> None:
    """Append a traceback to an exception's own one."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is not None:
        last.tb_next = further


@final
class ThreadLog:
    """Logs the abandoned threads of one handler, and reports their number.

    Args:
        handler: its name.
        on_count: is called with the number when it has changed.
    """

    def __init__(
        self,
        calls: ThreadCalls,
        handler: str,
        log: Any,
        clock: Clock,
        on_count: Callable[[int], None],
    ) -> None:
        self._threads = calls.abandoned
        self._handler = handler
        self._log = log
        self._clock = clock
        self._on_count = on_count
        self._next_report = math.inf
        self._logged: set[AbandonedThread] = set()
        calls.on_changed = self._on_changed

    @property
    def count(self) -> int:
        """The number of abandoned threads that have not ended."""
        return len(self._threads)

    def _on_changed(self, thread: AbandonedThread) -> None:
        if thread in self._logged:
            self._logged.remove(thread)
            self._log.info(
                "the thread of a cancelled handler has ended",
                handler=self._handler,
                argument=repr_of(thread.argument),
                seconds=round(self._clock() - thread.since, 3),
                threads=self.count,
            )
        self._on_count(self.count)

    def flush(self, *, at_end: bool = False) -> None:
        """Log each thread that does not end soon, and all once in REPORT_INTERVAL.

        Args:
            at_end: the worker ends: log the threads that have not ended.
        """
        now = self._clock()
        for thread in self._threads:
            if thread not in self._logged and now >= thread.since + SOON:
                self._log_abandoned(thread)
        if at_end:
            self._next_report = now if self._threads else math.inf
        self._report(now)

    def _log_abandoned(self, thread: AbandonedThread) -> None:
        self._logged.add(thread)
        self._next_report = min(self._next_report, thread.since + REPORT_INTERVAL)
        self._log.warning(
            "a cancelled handler goes on in its thread; until it ends, it takes "
            "one of the concurrency slots",
            handler=self._handler,
            argument=repr_of(thread.argument),
            at=thread.line(),
            threads=self.count,
        )

    def _report(self, now: float) -> None:
        if now < self._next_report:
            return
        self._next_report = now + REPORT_INTERVAL if self._threads else math.inf
        for thread in list(self._threads)[:1]:
            self._log.warning(
                "threads of cancelled handlers have not ended",
                handler=self._handler,
                threads=self.count,
                seconds=round(now - thread.since),
                argument=repr_of(thread.argument),
                at=thread.line(),
            )


def thread_logs(
    routes: Iterable[Any], log: Any, clock: Clock, on_count: Callable[[Any, int], None]
) -> list[ThreadLog]:
    """Return the logs of the handlers that run in threads.

    Args:
        on_count: is called with the settings of a handler, and its number of threads.
    """
    return [
        ThreadLog(
            route.call.threads,
            route.name,
            log,
            clock,
            partial(on_count, route.settings),
        )
        for route in routes
        if route.call.threads is not None
    ]
