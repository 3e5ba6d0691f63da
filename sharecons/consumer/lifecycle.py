"""Starting and stopping a consumer, from any task of the application.

The states are, in this order: new, starting, open, closing, closed. A start that fails
returns to new.
"""

import asyncio
import logging
import signal
from abc import ABC, abstractmethod
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Literal, Self

import anyio

from sharecons.config import validation
from sharecons.consumer.stored_error import StoredError
from sharecons.errors import BackgroundTaskError, ClosedError, ConsumerStateError
from sharecons.net.background import Background, current_task
from sharecons.net.io.callbacks import EXITS
from sharecons.net.io.event_loop import LoopGuard, in_trio
from sharecons.stop_signals import Listener, stop_on_signals

__all__ = ["Lifecycle"]

RELEASE_TIMEOUT: Final = 5.0
"""Seconds to wait for cancelled tasks; closing connections takes no time."""

# Not structlog's: its default renderer prints the local variables of a traceback, and
# there are passwords among them.
_log = logging.getLogger(__name__)


class Lifecycle(ABC):
    """`async with`, `start`, `stop` and `aclose` of a consumer.

    The background tasks depend on no task of the application (`net.background`). If
    one of them fails, the failure is logged, and raised by the application's next
    call as a `BackgroundTaskError`. KeyboardInterrupt and SystemExit, which a callback
    can raise, are raised unchanged.
    """

    def __init__(self) -> None:
        self._state: Literal["new", "starting", "open", "closing", "closed"] = "new"
        self._starting: anyio.CancelScope | None = None
        self._background: Background | None = None
        self._crash: StoredError | None = None
        self._entered_by: object = None
        self._loop_guard: LoopGuard | None = None
        self._handle_signals = False
        self._signals = ExitStack()
        self._signal_listener: Listener | None = None
        self._is_start_stopped = False

    # Implemented by the consumer.

    @property
    @abstractmethod
    def group_id(self) -> str:
        """The share group."""

    @abstractmethod
    def _end_loops(self) -> None:
        """Fetch no more and end each loop at its next request."""

    @abstractmethod
    async def _open(self) -> Background:
        """Connect and start the background tasks, which end in `_handle_tasks_end`.

        After its last await it calls `_check_starting`.
        """

    @abstractmethod
    def _stop_consuming(self) -> None:
        """Deliver no more records; the first step of closing."""

    @abstractmethod
    async def _leave(self) -> None:
        """Send acknowledgements and leave the group; returns if the tasks end."""

    @abstractmethod
    def _abandon(self) -> None:
        """Reject acknowledgements from now on: they can no longer be sent."""

    @abstractmethod
    def _on_crash(self, crash: StoredError) -> None:
        """Raise this in every waiting task and in each later call for records."""

    @abstractmethod
    def _on_tasks_ended(self) -> None:
        """End calls that wait for the background tasks: they have ended."""

    @abstractmethod
    async def _release(self) -> None:
        """Close the connections; can be called again."""

    # Starting.

    async def __aenter__(self) -> Self:
        """Connect, and begin to join the group; records come about a second later.

        Cancelling this leaves nothing behind but, perhaps, the group's config set.

        Raises:
            ConnectionFailedError: no broker responded within `connect_timeout`.
            AuthenticationError: either side rejected the credentials.
            UnsupportedVersionError: the broker has no share groups.
            AuthorizationError: setting `auto_offset_reset` is not allowed.
            ConsumerStateError: it was started before; make another consumer.
            ClosedError: another task closed it meanwhile.
        """
        await self._start()
        self._entered_by = current_task()
        return self

    async def start(self) -> None:
        """Start as `async with` does; `stop` ends it, in this task or in another.

        On asyncio only. A trio program uses `async with`, so that the consumer ends
        with its block.

        Raises:
            ConsumerStateError: it was started before, or this is trio.
            Others as `async with`.
        """
        if in_trio():
            raise ConsumerStateError(
                "start() is for asyncio; on trio use `async with consumer:`, which "
                "stops the consumer when its block ends"
            )
        await self._start()

    async def _start(self) -> None:
        if self._state != "new":
            raise ConsumerStateError(
                f"the consumer is {self._state}, and a consumer can be started only "
                "once; create another ShareConsumer"
            )
        self._state, self._loop_guard = "starting", LoopGuard("consumer")
        self._listen_to_signals()
        try:
            with anyio.CancelScope() as self._starting:
                self._background = await self._open()
                self._state = "open"
        except ClosedError:
            if not self._is_start_stopped:
                raise
        finally:
            self._starting = None
            if self._state == "starting":
                self._state, self._loop_guard = "new", None
            if self._state != "open":
                self._signals.close()
        if not self._is_start_stopped:
            self._check_open()  # `aclose` can cancel the scope

    def _check_starting(self) -> None:
        if self._state != "starting":
            raise ClosedError(
                "the consumer was closed by another task while it started; create "
                "another ShareConsumer"
            )

    # Signals.

    def _listen_to_signals(self) -> None:
        if self._handle_signals:
            self._signal_listener = self._signals.enter_context(
                stop_on_signals(self.group_id, self._on_stop_signal)
            )

    @property
    def stop_signal(self) -> signal.Signals | None:
        """The signal that has stopped the consumer (`handle_signals`), or None."""
        listener = self._signal_listener
        return None if listener is None else listener.received

    def _on_stop_signal(self) -> None:
        if self._state == "open":
            self._end_loops()
        elif self._starting is not None:
            self._is_start_stopped = True
            self._state = "closed"
            self._starting.cancel()

    # Stopping.

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._close(10.0)
        if kind is None:
            self._raise_unreported_crash()
        if in_trio() and self._entered_by is not current_task():
            raise ConsumerStateError(
                "the consumer was entered by one task and left by another, which trio "
                "does not allow; it is closed now. Keep `async with consumer:` in one "
                "task, and close an async generator around it with `aclosing`"
            )

    async def stop(self, *, timeout: float = 10.0) -> None:
        """Stop the consumer, as `aclose` does; before `start` it never starts."""
        await self.aclose(timeout=timeout)

    async def aclose(self, *, timeout: float = 10.0) -> None:
        """Send pending acknowledgements, release the other records, leave the group.

        Loops end; in implicit mode the current record is not accepted. Any task can
        call this. A second call waits for the first, and does nothing once the
        consumer is closed.

        After `timeout` seconds, or if this is cancelled, the connections are closed.
        Then the broker releases the records, and removes the member after its session
        timeout.

        Raises:
            BackgroundTaskError: a background task failed, and no call raised it yet.
            WrongThreadError: this is not the event loop that it was started in.
        """
        validation.check_timeout(timeout)
        await self._close(timeout)
        self._raise_unreported_crash()

    async def _close(self, timeout: float) -> None:
        if self._state == "closed" and (
            self._background is None or self._background.has_ended
        ):
            return
        self._check_caller()
        if self._state in ("new", "starting"):
            self._state = "closed"
            if self._starting is not None:
                self._starting.cancel()
        elif self._state == "open":
            self._state = "closing"
            await self._close_within(timeout)
        elif self._background is not None:
            with anyio.move_on_after(timeout, shield=True) as limit:
                await self._background.wait()
            if limit.cancelled_caught:
                self._abort()

    async def _close_within(self, timeout: float) -> None:
        assert self._background is not None, "open"
        try:
            self._stop_consuming()
            with anyio.move_on_after(timeout, shield=True):
                await self._leave()
        finally:
            self._abort()
            with anyio.move_on_after(RELEASE_TIMEOUT, shield=True):
                await self._background.wait()
                await self._release()
            self._signals.close()

    def _abort(self) -> None:
        """End the background tasks and their connections immediately."""
        assert self._background is not None, "was open"
        self._state = "closed"
        self._abandon()
        self._background.cancel()

    # Background tasks that fail.

    def _handle_tasks_end(self, error: BaseException | None) -> None:
        """Note the end of the background tasks, and the exception that ended them."""
        if isinstance(error, Exception):
            _log.error("a background task of the consumer failed", exc_info=error)
            self._record_crash("a background task of the consumer failed", error)
        elif error is not None and self._state == "open":
            what = "was cancelled" if _is_cancelled(error) else "failed"
            self._record_crash(f"a background task of the consumer {what}", error)
        self._on_tasks_ended()

    def _record_crash(self, what: str, error: BaseException) -> None:
        if not isinstance(error, EXITS):
            failed = BackgroundTaskError(f"{what}: {error!r}; start another consumer")
            failed.__cause__ = error
            error = failed
        self._crash = StoredError(error)
        self._abandon()
        self._on_crash(self._crash)

    def _raise_unreported_crash(self) -> None:
        if self._crash is not None and not self._crash.was_raised:
            self._crash.throw()

    def _check_open(self) -> None:
        """Check that the consumer can be used.

        Raises:
            ConsumerStateError, ClosedError: it is not open.
            WrongThreadError: this is not its event loop.
            BackgroundTaskError: a background task failed.
        """
        if self._state in ("new", "starting"):
            raise ConsumerStateError(
                "the consumer is not started; use `async with consumer:` or "
                "`await consumer.start()`"
            )
        if self._state != "open":
            raise ClosedError("the consumer is closed; create another ShareConsumer")
        self._check_caller()
        if self._crash is not None:
            self._crash.throw()

    def _check_caller(self) -> None:
        if self._loop_guard is not None:
            self._loop_guard.check()


def _is_cancelled(error: BaseException) -> bool:
    return isinstance(error, asyncio.CancelledError) or in_trio()
