"""`spark.read`: what is there goes into the ledger once, and is read at will."""

import time
from collections.abc import Callable
from typing import Final

from sharecons.log import get_logger
from sharecons.spark.driver import Driver
from sharecons.spark.errors import LedgerLostError
from sharecons.spark.ledger import Taken
from sharecons.spark.opening import Opened, open_driver
from sharecons.spark.options import SourceOptions
from sharecons.spark.planning import plan_tasks

__all__ = ["BatchQuery"]

LOOK: Final = 0.5

_log = get_logger(__name__)


class BatchQuery:
    """Plans one batch; acquires first, unless it is to read what is there already.

    Nothing is trimmed: the same positions give the same rows, as long as Kafka keeps
    the records.
    """

    def __init__(
        self,
        options: SourceOptions,
        opened: Callable[[SourceOptions], Opened] = open_driver,
    ) -> None:
        self._options = options
        self._opened = opened

    def tasks(self) -> list[list[Taken]]:
        """Acquire, and divide what is to be read over tasks.

        Raises:
            Error: nothing could be acquired; nothing is lost by that.
        """
        driver, _ = self._opened(self._options)
        try:
            start = self._start(driver)
            self._acquire(driver)
        finally:
            # What is in hand is entered by this, and belongs to this batch.
            driver.stop()
        end = self._end(driver)
        _log.info("reads the ledger", start=start, end=end)
        return plan_tasks(
            driver.between(start, end),
            least=self._options.min_partitions,
            most_records=self._options.max_records_per_partition,
        )

    def _start(self, driver: Driver) -> int:
        start = self._options.starting_position
        if start == "new":
            return driver.end
        return driver.begin if start == "earliest" else int(start)

    def _end(self, driver: Driver) -> int:
        end = self._options.ending_position
        if end is None:
            return driver.end
        if end > driver.end:
            raise LedgerLostError(
                f"endingPosition is {end}, and the ledger in "
                f"{self._options.ledger_location} ends at {driver.end}"
            )
        return end

    def _acquire(self, driver: Driver) -> None:
        """Acquire what the topics hold now, up to the limit, in whole fetches."""
        if self._options.ending_position is not None:
            return
        end = driver.end
        goal = driver.goal
        most = goal.most
        if self._options.max_offsets_per_trigger is not None:
            most = min(most, end + self._options.max_offsets_per_trigger)
        while not goal.reached and end < most and not self._waited_enough(driver):
            end = driver.wait_beyond(end, LOOK)
            driver.planned(end)

    def _waited_enough(self, driver: Driver) -> bool:
        """Nothing comes: others of the group hold what is lacking."""
        idle = time.monotonic() - driver.idle_since()
        return idle >= self._options.idle_timeout
