"""The run of a worker's source, and the calls that wait for its start or its end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from sharecons.errors import ClosedError
from sharecons.member.record_source import RecordSource
from sharecons.record import TopicPartition

__all__ = ["SourceRun"]


class SourceRun:
    """Starts a source, and closes it."""

    def __init__(self, source: RecordSource) -> None:
        self._source = source
        self._starting: anyio.CancelScope | None = None
        self._start_or_end: anyio.Event | None = None
        self._ended: anyio.Event | None = None
        self._has_ended = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[bool]:
        """Start the source, and close it at the end; yield whether it has started.

        It has not if `cancel_start` was called.

        Raises:
            Error: the source cannot start, or one of its tasks has failed.
        """
        source = self._source
        with anyio.CancelScope() as self._starting:
            await source.start()
        if source.state != "open":
            yield False
            return
        self._end_waits()
        try:
            yield True
        except anyio.get_cancelled_exc_class():
            # `close_soon` is shielded from this cancellation, and must not take long.
            source.shorten_close()
            raise
        finally:
            await source.close_soon()
        source.raise_unreported_crash()

    def cancel_start(self) -> None:
        """Cancel the start, if the source has not started yet."""
        if self._starting is not None:
            self._starting.cancel()

    async def wait_until_assigned(self) -> frozenset[TopicPartition]:
        """Wait until the source is started and has partitions.

        Raises:
            ClosedError: the worker has ended.
            Others as `RecordSource.assigned`.
        """
        while self._source.state in ("new", "starting") and not self._has_ended:
            if self._start_or_end is None:
                self._start_or_end = anyio.Event()
            await self._start_or_end.wait()
        if self._has_ended:
            raise ClosedError("the worker has ended; create another ShareWorker")
        return await self._source.assigned()

    def on_ended(self) -> None:
        """End calls that wait for the start: the worker has ended."""
        self._has_ended = True
        self._end_waits()
        if self._ended is not None:
            self._ended.set()

    async def wait_until_ended(self) -> None:
        """Wait until `on_ended` was called."""
        if not self._has_ended:
            # Not in the constructor, which can be called outside of an event loop.
            self._ended = self._ended or anyio.Event()
            await self._ended.wait()

    def _end_waits(self) -> None:
        if self._start_or_end is not None:
            self._start_or_end.set()
            self._start_or_end = None
