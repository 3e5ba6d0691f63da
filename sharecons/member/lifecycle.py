"""Starting and stopping a member, from any task of the application.

The states are, in this order: new, starting, open, closing, closed. A start that fails
returns to new.
"""

import asyncio
from abc import ABC, abstractmethod
from typing import Final, Literal

import anyio

from sharecons.errors import BackgroundTaskError, ClosedError, ConsumerStateError
from sharecons.guard import EXITS, text_by
from sharecons.log import get_logger
from sharecons.member.member_tasks import MemberTasks
from sharecons.member.pausable_buffer import PausableBuffer
from sharecons.member.stored_error import StoredError
from sharecons.net.background import Background
from sharecons.net.io.event_loop import LoopGuard, in_trio

__all__ = ["Lifecycle"]

RELEASE_TIMEOUT: Final = 5.0
"""Seconds to wait for cancelled tasks; closing connections takes no time."""

_log = get_logger(__name__)


class Lifecycle(ABC):
    """`start` and `close` of a member.

    The background tasks depend on no task of the application (`net.background`). If
    one of them fails, the failure is logged, and raised by the application's next
    call as a `BackgroundTaskError`. KeyboardInterrupt and SystemExit, which a callback
    can raise, are raised unchanged.

    Attributes:
        owner: the member's user, for messages: "consumer" or "worker".
        state: its place in the lifecycle.
        loop_guard: checks that a call is in the event loop that it was started in.
        buffer: the acquired records, once the member has connected.
    """

    buffer: PausableBuffer

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.state: Literal["new", "starting", "open", "closing", "closed"] = "new"
        self._tasks: MemberTasks | None = None
        self._starting: anyio.CancelScope | None = None
        self._background: Background | None = None
        self._crash: StoredError | None = None
        self.loop_guard: LoopGuard | None = None

    @property
    def has_failed(self) -> bool:
        """True if the background tasks have ended, as they do with the event loop."""
        return self._crash is not None

    @property
    def _started(self) -> MemberTasks:
        assert self._tasks is not None, "started"
        return self._tasks

    # Implemented by the member.

    @abstractmethod
    async def _open(self) -> Background:
        """Connect and start the background tasks, which end in `_handle_tasks_end`.

        After its last await it calls `_check_starting`, then it sets the attributes.
        """

    # Starting.

    async def start(self) -> None:
        """Start the member; as `RecordSource.start`.

        Raises:
            ClosedError: another task closed it meanwhile.
            Error: as `RecordSource.start`.
        """
        if self.state != "new":
            raise ConsumerStateError(
                f"the {self.owner} is {self.state}, and a {self.owner} can be started "
                "only once; create another one"
            )
        self.state, self.loop_guard = "starting", LoopGuard(self.owner)
        try:
            with anyio.CancelScope() as self._starting:
                self._background = await self._open()
                self.state = "open"
        finally:
            self._starting = None
            if self.state == "starting":
                self.state, self.loop_guard = "new", None
        self.check_open()  # `close` can cancel the scope

    def _check_starting(self) -> None:
        if self.state != "starting":
            raise ClosedError(
                f"the {self.owner} was closed by another task while it started; create "
                "another one"
            )

    def cancel_start(self) -> bool:
        """Close a member that is starting; return whether it was.

        `start` then raises ClosedError.
        """
        if self.state != "starting":
            return False
        self.state = "closed"
        if self._starting is not None:
            self._starting.cancel()
        return True

    # Stopping.

    async def close(self, timeout: float, *, leave: bool = True) -> None:
        """Close the member; as `LeaseSource.close`.

        Any task can call this. A second call waits for the first, and does nothing
        once the member is closed.

        Raises:
            WrongThreadError: this is not the event loop that it was started in.
        """
        if self.state == "closed" and (
            self._background is None or self._background.has_ended
        ):
            return
        self.check_caller()
        if self.state == "new":
            self.state = "closed"
        elif self.state == "open":
            self.state = "closing"
            await self._close_within(timeout, leave=leave)
        elif not self.cancel_start() and self._background is not None:
            with anyio.move_on_after(timeout, shield=True) as limit:
                await self._background.wait()
            if limit.cancelled_caught:
                self._abort()

    async def _close_within(self, timeout: float, *, leave: bool) -> None:
        assert self._background is not None, "open"
        try:
            self.buffer.close()
            # Shielded: without the last acknowledgements, processed records come again.
            if leave:
                with anyio.move_on_after(timeout, shield=True):
                    await self._started.close()
        finally:
            self._abort()
            with anyio.move_on_after(RELEASE_TIMEOUT, shield=True):
                await self._background.wait()
                await self._started.release()

    def _abort(self) -> None:
        """End the background tasks and their connections immediately."""
        assert self._background is not None, "was open"
        self.state = "closed"
        self._started.abandon()
        self._background.cancel()

    # Background tasks that fail.

    def _handle_tasks_end(self, error: BaseException | None) -> None:
        """Record why the background tasks ended; an exception fails the member."""
        if isinstance(error, Exception):
            _log.error("a background task of the consumer failed", exc_info=error)
            self._record_crash("a background task of the consumer failed", error)
        elif error is not None and self.state == "open":
            what = "was cancelled" if _is_cancelled(error) else "failed"
            self._record_crash(f"a background task of the consumer {what}", error)
        self._started.on_tasks_ended()

    def _record_crash(self, what: str, error: BaseException) -> None:
        if not isinstance(error, EXITS):
            failed = BackgroundTaskError(
                f"{what}: {text_by(repr, error)}; start another consumer"
            )
            failed.__cause__ = error
            error = failed
        self._crash = StoredError(error)
        self._started.abandon()
        self.buffer.fail(self._crash)

    def raise_unreported_crash(self) -> None:
        if self._crash is not None and not self._crash.was_raised:
            self._crash.throw()

    def check_open(self) -> None:
        """Check that the member can be used.

        Raises:
            ConsumerStateError, ClosedError: it is not open.
            WrongThreadError: this is not its event loop.
            BackgroundTaskError: a background task failed.
        """
        if self.state in ("new", "starting"):
            raise ConsumerStateError(
                f"the {self.owner} is not started; use `async with {self.owner}:`"
            )
        if self.state != "open":
            raise ClosedError(f"the {self.owner} is closed; create another one")
        self.check_caller()
        if self._crash is not None:
            self._crash.throw()

    def check_caller(self) -> None:
        if self.loop_guard is not None:
            self.loop_guard.check()


def _is_cancelled(error: BaseException) -> bool:
    return isinstance(error, asyncio.CancelledError) or in_trio()
