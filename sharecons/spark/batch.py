"""A batch query (`spark.read`): acquires into the ledger once, and reads that."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from math import inf
from typing import Final

from sharecons.log import get_logger
from sharecons.spark.driver import Driver
from sharecons.spark.errors import LedgerLostError
from sharecons.spark.factory import TAKEOVER_TIMEOUT, create_driver, create_store
from sharecons.spark.ledger import AcquiredRange, Ledger
from sharecons.spark.load_lock import LoadLock
from sharecons.spark.loads import Load
from sharecons.spark.options import QueryOptions
from sharecons.spark.planning import IdleTimeout, plan_tasks
from sharecons.spark.store import Store

__all__ = ["BatchQuery"]

CHECK_INTERVAL: Final = 0.5

DEFAULT_AHEAD: Final = 1_000_000
"""maxOffsetsAhead of a batch, which reads all current records."""

_log = get_logger(__name__)


class BatchQuery:
    """Plans one batch.

    The first planning of a `load()` acquires records. A later one, in any process,
    reads the same positions. Nothing is trimmed, so the same positions return the same
    rows, as long as Kafka keeps the records. A query with `endingPosition` acquires
    nothing.
    """

    def __init__(
        self,
        options: QueryOptions,
        load_id: str,
        store: Store | None = None,
        driver_factory: Callable[[QueryOptions, Store, Ledger], Driver] = create_driver,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._load_id = load_id
        self._store = store or create_store(options, LoadLock(load_id))
        self._create_driver = driver_factory
        self._clock = clock

    def plan_tasks(self) -> list[list[AcquiredRange]]:
        """Acquire if this load() has not yet, and divide its ranges into tasks.

        Raises:
            LedgerLostError: positions to read were trimmed, or are beyond the ledger's
                end.
            Error: acquiring failed; the next planning continues it.
        """
        ranges = self._read_positions() if self._acquires_nothing else self._read_load()
        return plan_tasks(
            ranges,
            min_tasks=self._options.min_partitions,
            max_records=self._options.max_records_per_partition,
        )

    @property
    def _acquires_nothing(self) -> bool:
        return self._options.ending_position is not None

    # Positions of the options.

    def _read_positions(self) -> list[AcquiredRange]:
        ledger = self._store.read(self._options.group_id).ledger
        start = self._start_position(ledger)
        end = self._options.ending_position
        assert end is not None, "acquires nothing"
        if end > ledger.end:
            raise LedgerLostError(
                f"endingPosition is {end}, and the ledger in "
                f"{self._options.ledger_location} ends at {ledger.end}"
            )
        return self._ranges_between(ledger, [(start, end)])

    def _start_position(self, ledger: Ledger) -> int:
        """Return the first position to read in a ledger that was just opened."""
        start = self._options.starting_position
        if start == "new":
            return ledger.end
        if start == "earliest":
            return ledger.begin
        # Raises LedgerLostError for a trimmed position.
        ledger.ranges_between(min(int(start), ledger.end), ledger.end)
        return int(start)

    # Positions of this load().

    def _read_load(self) -> list[AcquiredRange]:
        # Reading takes no lock: another load() might be acquiring.
        state = self._store.read(self._options.group_id)
        load = state.loads.get(self._load_id)
        if load is not None and load.is_complete:
            return self._ranges_of_load(state.ledger, load)
        ledger = self._store.open(self._options.group_id, lock_timeout=TAKEOVER_TIMEOUT)
        try:
            # Another process can plan this load() while this one awaits the lock.
            load = self._store.get_load(self._load_id)
            if load is None or not load.is_complete:
                load = self._acquire_load(ledger, load)
        finally:
            self._store.close()
        return self._ranges_of_load(ledger, load)

    def _acquire_load(self, ledger: Ledger, unfinished: Load | None) -> Load:
        if unfinished is not None:
            self._check_not_trimmed(ledger, unfinished)
        begin = ledger.end
        load = self._store.begin_load(self._load_id, self._start_position(ledger))
        limit = self._options.max_offsets_per_trigger
        rest = None if limit is None else max(0, limit - load.acquired)
        ahead = rest if rest is not None else self._options.max_offsets_ahead
        driver = self._create_driver(
            replace(
                self._options,
                max_offsets_ahead=DEFAULT_AHEAD if ahead is None else ahead,
                min_offsets_per_trigger=None,
            ),
            self._store,
            ledger,
        )
        driver.mark_planned(begin)
        try:
            driver.start()
            self._acquire(driver, begin, rest)
            # Leaving writes the last acquired records, which belong to this batch.
            driver.leave_group()
            return self._store.complete_load(self._load_id)
        finally:
            driver.stop()

    def _acquire(self, driver: Driver, end: int, max_offsets: int | None) -> None:
        """Acquire up to the current ends of the topics, or `max_offsets`.

        Args:
            end: the end of the ledger.
            max_offsets: the driver's limit, or None for no limit.
        """
        limit = inf if max_offsets is None else end + max_offsets
        idle_timeout = IdleTimeout(
            self._options.idle_timeout, driver.target.expected_end
        )
        while end < limit:
            idle_timeout.expected_end = driver.target.expected_end
            is_expired = idle_timeout.is_expired(
                end, driver.idle_since(), self._clock()
            )
            if (driver.target.is_reached or is_expired) and driver.can_finish():
                break
            end = driver.wait_beyond(end, CHECK_INTERVAL)
            if max_offsets is None:
                driver.mark_planned(end)

    def _ranges_of_load(self, ledger: Ledger, load: Load) -> list[AcquiredRange]:
        self._check_not_trimmed(ledger, load)
        if load.start > ledger.end:
            raise LedgerLostError(
                f"startingPosition is {load.start}, and the ledger in "
                f"{self._options.ledger_location} ends at {ledger.end}"
            )
        return self._ranges_between(ledger, load.ranges)

    def _check_not_trimmed(self, ledger: Ledger, load: Load) -> None:
        first = next((first for first, _ in load.ranges), ledger.begin)
        if first < ledger.begin:
            raise LedgerLostError(
                f"this load() reads position {first} of the ledger in "
                f"{self._options.ledger_location}, which begins at {ledger.begin}: a "
                "stream on that ledger has committed the records of this load(); call "
                "load() again (with another loadId, if it has one) for new records"
            )

    def _ranges_between(
        self, ledger: Ledger, ranges: Iterable[tuple[int, int]]
    ) -> list[AcquiredRange]:
        acquired: list[AcquiredRange] = []
        for start, end in ranges:
            _log.info("reading the ledger", start=start, end=end)
            acquired += ledger.ranges_between(start, end)
        return acquired
