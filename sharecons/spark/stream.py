"""A streaming query: handles Spark's calls with the help of a driver."""

import time
from collections.abc import Callable
from typing import Any, Final

from sharecons.errors import Error, fresh
from sharecons.spark.errors import LedgerLostError
from sharecons.spark.factory import OpenedDriver, open_driver
from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.load_lock import LoadLock
from sharecons.spark.options import SourceOptions
from sharecons.spark.planning import (
    ALL_OFFSETS,
    AvailableNowTarget,
    BatchGrowth,
    BatchLimits,
    IdleTimeout,
    offsets_of_bytes,
    plan_tasks,
)

__all__ = ["StreamQuery"]

POLL_TIMEOUT: Final = 0.1
"""Seconds that a call waits for new offsets. Spark repeats it after 10 ms, so without
this an idle query would call a hundred times a second."""

CHECK_INTERVAL: Final = 0.25
"""Seconds between two checks of an available-now query whether to wait longer."""


class StreamQuery:
    """One query; opens its ledger and joins the group when it is created.

    An offset is a position in the ledger, with the ledger's id.
    """

    def __init__(
        self,
        options: SourceOptions,
        lock: LoadLock | None = None,
        opener: Callable[[SourceOptions, LoadLock | None], OpenedDriver] = open_driver,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._driver, self._ledger_id = opener(options, lock)
        self._clock = clock
        self._target: AvailableNowTarget | None = None
        self._idle_timeout = IdleTimeout(options.idle_timeout, 0)
        self._final_position: int | None = None
        self._final_error: Error | None = None
        self._last_trigger = clock()

    def initial_offset(self) -> dict[str, Any]:
        """Return where a query without a checkpoint starts, after trimmed ranges."""
        return self._offset(self._driver.begin)

    def end_when_drained(self) -> None:
        """Finish at the current ends of the topics (Trigger.AvailableNow)."""
        self._target = self._driver.target
        self._idle_timeout = IdleTimeout(
            self._options.idle_timeout, self._target.expected_end
        )

    def latest_offset(
        self, start: dict[str, Any], *, max_offsets: int | None, min_offsets: int | None
    ) -> dict[str, Any]:
        """Return where a batch from `start` ends; `start` itself if it must wait."""
        position = self._position(start)
        self._driver.mark_finished(position)
        if self._target is None:
            ledger_end = self._driver.wait_beyond(position, POLL_TIMEOUT)
            overdue = self._clock() - self._last_trigger >= self._max_delay
        else:
            ledger_end = self._wait_for_batch(
                position, self._limit_bytes(max_offsets), self._target
            )
            overdue = True
        limits = BatchLimits(
            max_offsets=self._limit_bytes(max_offsets), min_offsets=min_offsets
        )
        end = limits.batch_end(position, ledger_end, overdue=overdue)
        if end > position:
            self._last_trigger = self._clock()
        self._driver.mark_planned(end)
        return self._offset(end)

    def _limit_bytes(self, max_offsets: int | None) -> int | None:
        """Return the maximum of a batch, by offsets and by `maxBytesPerTrigger`."""
        max_bytes = self._options.max_bytes_per_trigger
        if max_bytes is None or max_offsets == ALL_OFFSETS:
            return max_offsets
        stats = self._driver.stats()
        of_bytes = offsets_of_bytes(
            max_bytes,
            acquired=stats["acquired"],
            acquired_bytes=stats["acquired_bytes"],
        )
        return of_bytes if max_offsets is None else min(of_bytes, max_offsets)

    def report_latest_offset(self) -> dict[str, Any]:
        """Return the end of the ledger and the driver's stats, for the progress."""
        return {**self._offset(self._driver.end), **self._driver.stats()}

    def plan_tasks(
        self, start: dict[str, Any], end: dict[str, Any]
    ) -> list[list[AcquiredRange]]:
        """Divide the ranges between two offsets into tasks."""
        first, last = self._position(start), self._position(end)
        self._driver.mark_planned(last)
        return plan_tasks(
            self._driver.ranges_between(first, last),
            min_tasks=self._options.min_partitions,
            max_records=self._options.max_records_per_partition,
        )

    def commit(self, end: dict[str, Any]) -> None:
        """Trim the ledger up to `end`: Spark does not request it again."""
        self._driver.trim(self._position(end))

    def request_stop(self) -> None:
        """Make the member leave the group; later calls raise ClosedError."""
        self._driver.request_stop()

    def stop(self) -> None:
        """Accept all acquired records, leave the group, and unlock the ledger."""
        self._driver.stop()

    # Offsets.

    def _offset(self, position: int) -> dict[str, Any]:
        return {"position": position, "ledger": self._ledger_id}

    def _position(self, offset: dict[str, Any]) -> int:
        if offset.get("ledger", self._ledger_id) != self._ledger_id:
            raise LedgerLostError(
                f"the checkpoint belongs to the ledger {offset['ledger']}, but "
                f"{self._options.ledger_location} has the ledger {self._ledger_id}; "
                "set ledgerLocation to the ledger of the checkpoint, or start with a "
                "new checkpoint"
            )
        position = int(offset["position"])
        if position > self._driver.end:
            raise LedgerLostError(
                f"the checkpoint is at position {position}, but the ledger in "
                f"{self._options.ledger_location} ends at {self._driver.end}: its "
                "newest entries are lost; restore them, or start with a new checkpoint "
                "and ledgerLocation"
            )
        return position

    # Trigger.AvailableNow.

    def _wait_for_batch(
        self, position: int, max_offsets: int | None, target: AvailableNowTarget
    ) -> int:
        """Wait until a batch is complete, and return the ledger's end for this run."""
        driver, timeout = self._driver, self._idle_timeout
        size = driver.max_offsets_ahead
        if max_offsets is not None:
            size = min(max_offsets, size)
        growth = BatchGrowth(position, size)
        while self._final_position is None:
            end = driver.wait_for_offsets(position, size, CHECK_INTERVAL)
            now, idle_since = self._clock(), driver.idle_since()
            timeout.expected_end = target.expected_end
            if target.is_reached or timeout.is_expired(end, idle_since, now):
                self._try_to_finish(end)
            # If the member has ended, the next call raises its error.
            elif driver.has_ended or growth.is_complete(end, idle_since, now):
                return end
        if self._final_error is not None and position >= self._final_position:
            raise fresh(self._final_error)
        return max(self._final_position, position)

    def _try_to_finish(self, ledger_end: int) -> None:
        """Finish at the current end of the ledger, unless there are new partitions."""
        try:
            if self._driver.can_finish():
                self._final_position = ledger_end
        except Error as error:
            # Raised after the ranges up to this end were read.
            self._final_position, self._final_error = ledger_end, error

    @property
    def _max_delay(self) -> float:
        return self._options.max_trigger_delay
