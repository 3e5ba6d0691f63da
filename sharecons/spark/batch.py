"""`spark.read`: what is there goes into the ledger once, and is read at will."""

import time
from collections.abc import Callable
from math import inf
from typing import Final

from sharecons.log import get_logger
from sharecons.spark.driver import Driver
from sharecons.spark.errors import LedgerLostError
from sharecons.spark.ledger import Taken
from sharecons.spark.opening import Opened, open_driver
from sharecons.spark.options import SourceOptions
from sharecons.spark.planning import Patience, plan_tasks

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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._opened = opened
        self._clock = clock

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
            return driver.began_at
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
        end, limit = driver.began_at, inf
        if self._options.max_offsets_per_trigger is not None:
            limit = end + self._options.max_offsets_per_trigger
        patience = Patience(self._options.idle_timeout, driver.goal.most)
        while not driver.goal.reached and end < limit:
            end = driver.wait_beyond(end, LOOK)
            driver.planned(end)
            if patience.is_over(end, driver.idle_since(), self._clock()):
                break
