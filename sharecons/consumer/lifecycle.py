"""Starting and stopping a consumer, from any task of the application."""

import signal
from abc import ABC, abstractmethod
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from sharecons.config import validation
from sharecons.errors import ClosedError, ConsumerStateError
from sharecons.member.share_source import ShareSource
from sharecons.member.source_health import SourceHealth
from sharecons.net.background import current_task
from sharecons.net.io.event_loop import in_trio
from sharecons.stop_signals import Listener, stop_on_signals

__all__ = ["Lifecycle"]


class Lifecycle(SourceHealth, ABC):
    """`async with`, `start`, `stop` and `aclose` of a consumer."""

    def __init__(self, source: ShareSource) -> None:
        super().__init__(source)
        # Not a `RecordSource`: loops read the leases in its buffer, so that a record
        # costs no call, no await and no lookup.
        self._source = source
        self._entered_by: object = None
        self._handle_signals = False
        self._signals = ExitStack()
        self._signal_listener: Listener | None = None
        self._is_start_stopped = False

    # Implemented by the consumer.

    @abstractmethod
    def _create_queue(self) -> None:
        """Prepare to deliver records: the source has started."""

    @abstractmethod
    def _end_loops(self) -> None:
        """Fetch no more and end each loop at its next request."""

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
            Error: others, as `async with`.
        """
        if in_trio():
            raise ConsumerStateError(
                "start() is for asyncio; on trio use `async with consumer:`, which "
                "stops the consumer when its block ends"
            )
        await self._start()

    async def _start(self) -> None:
        if self._handle_signals and self._source.state == "new":
            await self._start_with_signals()
        else:
            await self._start_source()

    async def _start_source(self) -> None:
        await self._source.start()
        self._create_queue()  # before any other task runs

    # Signals.

    async def _start_with_signals(self) -> None:
        """Start; a signal can end the start, and then loops have no records."""
        self._signal_listener = self._signals.enter_context(
            stop_on_signals(self._source.group_id, self._on_stop_signal)
        )
        try:
            await self._start_source()
        except ClosedError:
            if not self._is_start_stopped:
                raise
        finally:
            if self._source.state != "open":
                self._signals.close()

    @property
    def stop_signal(self) -> signal.Signals | None:
        """The signal that has stopped the consumer (`handle_signals`), or None."""
        listener = self._signal_listener
        return None if listener is None else listener.received

    def _on_stop_signal(self) -> None:
        if self._source.state == "open":
            self._end_loops()
        elif self._source.cancel_start():
            self._is_start_stopped = True

    # Stopping.

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._close(10.0)
        if kind is None:
            self._source.raise_unreported_crash()
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
        self._source.raise_unreported_crash()

    async def _close(self, timeout: float) -> None:
        try:
            await self._source.close(timeout)
        finally:
            if self._source.state == "closed":
                self._signals.close()
