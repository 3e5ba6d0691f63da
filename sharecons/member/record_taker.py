"""Taking the records of a member in one task, which acknowledges each of them."""

from collections.abc import Sequence
from typing import Any, Final

from anyio.lowlevel import checkpoint

from sharecons._record import RENEW
from sharecons.errors import ClosedError
from sharecons.member.lease_buffer import LeaseBuffer
from sharecons.member.source_options import SourceOptions
from sharecons.metrics.recorder import PollTimes
from sharecons.net.io.event_loop import AutoResetEvent
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult

__all__ = ["RecordTaker"]

SLICE: Final = 0.005
"""Seconds for which records are taken before other tasks run."""


class RecordTaker:
    """Takes records from a buffer; its `BufferListener`.

    Args:
        buffer: has the records, which are not deserialized.
    """

    def __init__(self, buffer: LeaseBuffer, options: SourceOptions) -> None:
        self._on_locks_lost = options.on_locks_lost
        self._on_changed = options.on_changed
        self._buffer = buffer
        self._clock = buffer.clock
        self._changed = AutoResetEvent()
        self._poll_times = PollTimes()
        self._pause_at = self._clock()

    # Called by the buffer (`BufferListener`).

    def on_ready(self) -> None:
        self._changed.set()
        self._on_changed()

    def on_locks_lost(self, leases: Sequence[Lease]) -> bool:
        return self._on_locks_lost(leases[0].lock_scope.reason)

    def on_acks_failed(self, results: Sequence[AcknowledgeResult]) -> None:
        for result in results:
            if result.type == RENEW:
                self._on_locks_lost(f"a renewal failed: {result.error}")
                return

    def on_failed(self) -> None:
        self.on_ready()

    def on_closing(self) -> None:
        self.on_ready()

    # Called by the task.

    async def take(self, max_records: int, *, timeout: float) -> list[Any]:
        """Return records; as `RecordSource.take`."""
        buffer, deadline = self._buffer, self._clock() + timeout
        buffer.recorder.on_poll_started(self._poll_times, self._clock())
        try:
            if not await self._wait_for_records(deadline):
                return []
            return self._take_ready(max_records)
        finally:
            buffer.recorder.on_poll_ended(self._poll_times, self._clock())

    async def _wait_for_records(self, deadline: float) -> bool:
        self._check()
        # Handlers that never wait would stop heartbeats and renewals.
        if self._clock() >= self._pause_at:
            await checkpoint()
            self._continue()
        while not self._buffer.find_next():
            if self._clock() >= deadline:
                return False
            self._buffer.begin_wait()
            try:
                await self._changed.wait_until(deadline)
            finally:
                self._buffer.end_wait()
            self._continue()
        return True

    def _continue(self) -> None:
        """Check the member after other tasks have run."""
        self._pause_at = self._clock() + SLICE
        self._check()

    def _check(self) -> None:
        if self._buffer.closed:
            raise ClosedError("the member is closed")
        self._buffer.raise_fatal_error()

    def _take_ready(self, max_records: int) -> list[Any]:
        # An error waits for the next call: these records are delivered already.
        records = self._buffer.take(max_records)
        while len(records) < max_records and self._buffer.find_next(raises=False):
            records += self._buffer.take(max_records - len(records))
        return records
