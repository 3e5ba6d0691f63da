"""One streaming query: from what Spark asks to what the driver does."""

import time
from collections.abc import Callable
from typing import Any, Final

from sharecons.errors import Error, fresh
from sharecons.spark.errors import LedgerLostError
from sharecons.spark.factory import Opened, open_driver
from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.load_lock import LoadLock
from sharecons.spark.options import SourceOptions
from sharecons.spark.planning import (
    AvailableNowTarget,
    BatchLimits,
    Gathering,
    IdleTimeout,
    plan_tasks,
)

__all__ = ["StreamQuery"]

PATIENCE: Final = 0.1
"""How long a question for more may be held up when there is nothing: Spark asks again
after 10 ms, and an idle query would ask a hundred times a second."""

LOOK: Final = 0.25
"""How often an available-now query that waits looks whether it has waited enough."""


class StreamQuery:
    """Answers for one query; the ledger and the member come with the first question.

    Offsets are a position in the ledger, and which ledger that is.
    """

    def __init__(
        self,
        options: SourceOptions,
        lock: LoadLock | None = None,
        opened: Callable[[SourceOptions, LoadLock | None], Opened] = open_driver,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._driver, self._ledger_id = opened(options, lock)
        self._clock = clock
        self._goal: AvailableNowTarget | None = None
        self._patience = IdleTimeout(options.idle_timeout, 0)
        self._over_at: int | None = None
        self._over_by: Error | None = None
        self._last_trigger = clock()

    def initial(self) -> dict[str, Any]:
        """Where a query without a checkpoint begins: at what no other has committed."""
        return self._offset(self._driver.begin)

    def end_when_drained(self) -> None:
        """End at what the topics hold now."""
        self._goal = self._driver.goal
        self._patience = IdleTimeout(self._options.idle_timeout, self._goal.most)

    def latest(
        self, start: dict[str, Any], *, most: int | None, least: int | None
    ) -> dict[str, Any]:
        """Give where a batch from `start` ends; `start` itself if it is not due."""
        position = self._position(start)
        if self._goal is None:
            held = self._driver.wait_beyond(position, PATIENCE)
            overdue = self._clock() - self._last_trigger >= self._delay
        else:
            held, overdue = self._drained(position, most, self._goal), True
        end = BatchLimits(most=most, least=least).end(position, held, overdue=overdue)
        if end > position:
            self._last_trigger = self._clock()
        self._driver.planned(end)
        return self._offset(end)

    def report(self) -> dict[str, Any]:
        """Give what the progress shows: where the ledger ends, and our figures."""
        return {**self._offset(self._driver.end), **self._driver.figures()}

    def tasks(
        self, start: dict[str, Any], end: dict[str, Any]
    ) -> list[list[AcquiredRange]]:
        """Divide what stands between two offsets over tasks."""
        first, last = self._position(start), self._position(end)
        self._driver.planned(last)
        return plan_tasks(
            self._driver.between(first, last),
            least=self._options.min_partitions,
            most_records=self._options.max_records_per_partition,
        )

    def commit(self, end: dict[str, Any]) -> None:
        """Spark will not ask again for what stands before `end`."""
        self._driver.trim(self._position(end))

    def stop_soon(self) -> None:
        """Have the member leave the group; what is asked from now on is refused."""
        self._driver.stop_soon()

    def stop(self) -> None:
        """Leave the group; nothing is given back that was acquired."""
        self._driver.stop()

    # Offsets.

    def _offset(self, position: int) -> dict[str, Any]:
        return {"position": position, "ledger": self._ledger_id}

    def _position(self, offset: dict[str, Any]) -> int:
        if offset.get("ledger", self._ledger_id) != self._ledger_id:
            raise LedgerLostError(
                f"the checkpoint belongs to the ledger {offset['ledger']}, and the one "
                f"in {self._options.ledger_location} is {self._ledger_id}; give the "
                "right ledgerLocation, or begin with a new checkpoint"
            )
        position = int(offset["position"])
        if position > self._driver.end:
            raise LedgerLostError(
                f"the checkpoint is at position {position}, and the ledger in "
                f"{self._options.ledger_location} ends at {self._driver.end}: its "
                "newest entries are lost; restore them, or begin with a new checkpoint "
                "and ledgerLocation"
            )
        return position

    # Available now.

    def _drained(
        self, position: int, most: int | None, goal: AvailableNowTarget
    ) -> int:
        """Gather a batch before the goal; give where the ledger ends for this run."""
        ahead = self._options.most_ahead
        gathering = Gathering(position, ahead if most is None else min(most, ahead))
        while self._over_at is None:
            held = self._driver.gather(position, gathering.size, LOOK)
            now, idle_since = self._clock(), self._driver.idle_since()
            self._patience.most = goal.most
            if goal.reached or self._patience.is_over(held, idle_since, now):
                self._conclude(held)
            # What there is, if the member has ended: it is raised at the next asking.
            elif self._driver.ended or gathering.is_enough(held, idle_since, now):
                return held
        if self._over_by is not None and position >= self._over_at:
            raise fresh(self._over_by)
        return max(self._over_at, position)

    def _conclude(self, held: int) -> None:
        """End at what the ledger holds, unless there is more to wait for."""
        try:
            if self._driver.conclude():
                self._over_at = held
        except Error as error:
            # Raised once what is held was handed out.
            self._over_at, self._over_by = held, error

    @property
    def _delay(self) -> float:
        return self._options.max_trigger_delay
