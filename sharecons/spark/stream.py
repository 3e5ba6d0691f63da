"""A streaming query: handles Spark's calls with the help of a driver."""

import time
from collections.abc import Callable
from typing import Any, Final

from sharecons.errors import Error, fresh
from sharecons.log import get_logger
from sharecons.spark.earlier_batches import EarlierBatches
from sharecons.spark.errors import LedgerLostError
from sharecons.spark.factory import OpenedDriver, open_driver
from sharecons.spark.ledger import AcquiredRange, describe_ranges
from sharecons.spark.load_lock import LoadLock
from sharecons.spark.options import QueryOptions
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

_log = get_logger(__name__)


class StreamQuery:
    """One query; opens its ledger and joins the group when it is created.

    An offset is a position in the ledger, with the ledger's id and its end at the time:
    a ledger that is restored from a backup can lack entries beyond the checkpoint.
    """

    def __init__(
        self,
        options: QueryOptions,
        lock: LoadLock | None = None,
        opener: Callable[[QueryOptions, LoadLock | None], OpenedDriver] = open_driver,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._driver, self._ledger_id, finished = opener(options, lock)
        self._begin = max(self._driver.begin, finished)
        ends = options.batch_ends.get(self._ledger_id, ())
        self._earlier = EarlierBatches(self._begin, ends)
        self._clock = clock
        self._target: AvailableNowTarget | None = None
        self._idle_timeout = IdleTimeout(options.idle_timeout, 0)
        self._final_position: int | None = None
        self._final_error: Error | None = None
        self._last_trigger = clock()

    def initial_offset(self) -> dict[str, Any]:
        """Return where a query without a checkpoint starts, after finished batches."""
        self._driver.mark_finished(self._begin)
        return self._offset(self._begin)

    def end_when_drained(self) -> None:
        """Finish at the current ends of the topics (Trigger.AvailableNow)."""
        self._target = self._driver.target
        self._idle_timeout = IdleTimeout(
            self._options.idle_timeout, self._target.expected_end
        )

    def latest_offset(
        self, start: dict[str, Any], *, max_offsets: int | None, min_offsets: int | None
    ) -> dict[str, Any]:
        """Return where a batch from `start` ends; `start` itself if it must wait.

        Raises:
            LedgerLostError: the checkpoint is older than the ledger, or newer.
            Error: the member has ended.
        """
        position = self._position(start)
        end = self._earlier.end_after(position)
        if end is None:
            self._check_age(position)
            self._driver.mark_finished(position)
            end = self._plan_end(
                position, max_offsets=max_offsets, min_offsets=min_offsets
            )
        else:
            self._check_end(end)
        if end == position:
            return start  # Spark compares the whole offsets
        self._last_trigger = self._clock()
        self._driver.mark_planned(end)
        return {**self._offset(end), "ledger_end": self._driver.end}

    def _plan_end(
        self, position: int, *, max_offsets: int | None, min_offsets: int | None
    ) -> int:
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
        return limits.batch_end(position, ledger_end, overdue=overdue)

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
        if last <= self._driver.begin and self._earlier.is_stored(last):
            return []  # trimmed, as its batch was committed; the sink has its rows
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
        self._check_end(max(position, int(offset.get("ledger_end", 0))))
        return position

    def _check_end(self, position: int) -> None:
        """Check that the ledger has all entries that an earlier run has seen."""
        if position > self._driver.end:
            raise LedgerLostError(
                f"an earlier run of this query has read the ledger in "
                f"{self._options.ledger_location} up to position {position}, but it "
                f"ends at {self._driver.end}: its newest entries are lost, and the "
                "group has accepted their records; restore the entries, or start with "
                "a new checkpoint and ledgerLocation, without these records"
            )

    def _check_age(self, position: int) -> None:
        """Check that Spark continues where earlier batches have finished."""
        finished = self._earlier.finished_after(position)
        if finished is None:
            return
        first = max(position, self._driver.begin)
        records = describe_ranges(self._driver.ranges_between(first, finished))
        if self._options.fail_on_data_loss:
            raise LedgerLostError(
                f"the checkpoint is at position {position}, but the batches up to "
                f"{finished} of the ledger in {self._options.ledger_location} have "
                f"finished ({records}): the checkpoint is older than the ledger, or "
                "of another query, and new batches would repeat these records, or be "
                "skipped by a sink that knows their numbers; restore the newest "
                "checkpoint; or start with a new checkpoint and a new output, from "
                f"position {self._begin}; or set failOnDataLoss to false to read the "
                "records again"
            )
        _log.warning(
            "records of finished batches are read again",
            location=self._options.ledger_location,
            position=position,
            finished=finished,
            records=records,
        )

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
