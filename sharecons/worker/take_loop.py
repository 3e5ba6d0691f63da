"""The loop that takes records, if they can start or must be kept locked."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import anyio

from sharecons.errors import Error, RecordsError
from sharecons.log import get_logger
from sharecons.member.lock_keeper import LockKeeper
from sharecons.member.record_source import RecordSource
from sharecons.net.io.event_loop import AutoResetEvent
from sharecons.worker.demand import WorkerDemand
from sharecons.worker.machine.item import WorkItem

__all__ = ["TakeLoop"]

POLL_TIMEOUT: Final = 1.0
REST_AT_A_TIME: Final = 100
ERROR_PAUSE: Final = 0.2
"""Seconds until records are taken again after an error that does not end the member."""


class TakeLoop:
    """Takes records in a task.

    Args:
        demand: how many records are taken.
        add: is called with records.
        locks: renews the locks of the records.
        on_fatal_error: is called with the error that ended the member.
    """

    def __init__(
        self,
        source: RecordSource,
        demand: WorkerDemand,
        *,
        add: Callable[[Sequence[Any]], None],
        locks: LockKeeper[WorkItem],
        on_fatal_error: Callable[[Error], None],
    ) -> None:
        self._source = source
        self._demand = demand
        self._add = add
        self._locks = locks
        self._on_fatal_error = on_fatal_error
        self._wakeup = AutoResetEvent()
        self._log = get_logger(__name__, group=source.group_id)

    def wake(self) -> None:
        """Take more records if more can start now."""
        self._demand.on_changed()
        self._wakeup.set()

    async def run(self) -> None:
        """Take records until cancelled, or until an error has ended the member."""
        while not self._source.has_failed:
            count = self._demand.count()
            if count:
                await self._take(POLL_TIMEOUT, count)
                continue
            await self._wakeup.wait_until(self._demand.next_change())
            if self._locks.renews and self._demand.must_take_buffered():
                await self._take(0.0, self._source.buffered)

    async def take_rest(self) -> None:
        """Take what the member has, until cancelled or the member has failed."""
        while not self._source.has_failed:
            await self._take(POLL_TIMEOUT, REST_AT_A_TIME)

    async def _take(self, timeout: float, count: int) -> None:
        try:
            records = await self._source.take(count, timeout=timeout)
        except Error as error:
            if self._source.has_failed:
                self._on_fatal_error(error)
                return
            # The loop goes on: a damaged batch, a topic without permission to read.
            self._log.error("records not received", error=str(error))
            if not isinstance(error, RecordsError):
                await anyio.sleep(ERROR_PAUSE)
        else:
            self._add(records)
