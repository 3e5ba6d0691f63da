"""`spark.read`: what is there goes into the ledger once, and is read at will."""

import time
from collections.abc import Callable, Iterable
from math import inf
from typing import Final

from sharecons.log import get_logger
from sharecons.spark.driver import Driver
from sharecons.spark.errors import LedgerLostError
from sharecons.spark.factory import PATIENCE, driver_of, store_of
from sharecons.spark.ledger import AcquiredRange, Ledger
from sharecons.spark.load_lock import LoadLock
from sharecons.spark.loads import Load
from sharecons.spark.options import SourceOptions
from sharecons.spark.planning import IdleTimeout, plan_tasks
from sharecons.spark.store import Store

__all__ = ["BatchQuery"]

LOOK: Final = 0.5

_log = get_logger(__name__)


class BatchQuery:
    """Plans one batch; acquires first, unless it is to read what is there already.

    The first planning of a `load()` acquires. Any later one, in this process or in
    another, reads the same positions. Nothing is trimmed: the same positions give the
    same rows, as long as Kafka keeps the records.
    """

    def __init__(
        self,
        options: SourceOptions,
        load_id: str,
        store: Store | None = None,
        driver: Callable[[SourceOptions, Store, Ledger], Driver] = driver_of,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._load_id = load_id
        self._store = store or store_of(options, LoadLock(load_id))
        self._driver = driver
        self._clock = clock

    def tasks(self) -> list[list[AcquiredRange]]:
        """Acquire if that is due, and divide what is to be read over tasks.

        Raises:
            LedgerLostError: positions that are to be read were trimmed, or lie beyond
                the ledger's end.
            Error: nothing could be acquired; nothing is lost by that.
        """
        planned = self._given() if self._acquires_nothing else self._loaded()
        return plan_tasks(
            planned,
            least=self._options.min_partitions,
            most_records=self._options.max_records_per_partition,
        )

    @property
    def _acquires_nothing(self) -> bool:
        return self._options.ending_position is not None

    # Positions that were given.

    def _given(self) -> list[AcquiredRange]:
        ledger = self._store.read(self._options.group_id).ledger
        start = self._start(ledger)
        end = self._options.ending_position
        assert end is not None, "acquires nothing"
        if end > ledger.end:
            raise LedgerLostError(
                f"endingPosition is {end}, and the ledger in "
                f"{self._options.ledger_location} ends at {ledger.end}"
            )
        return self._between(ledger, [(start, end)])

    def _start(self, ledger: Ledger) -> int:
        """Return the first position to read, of a ledger as it was loaded."""
        start = self._options.starting_position
        if start == "new":
            return ledger.end
        if start == "earliest":
            return ledger.begin
        # Raises for a position that is trimmed.
        ledger.between(min(int(start), ledger.end), ledger.end)
        return int(start)

    # What this load() acquired.

    def _loaded(self) -> list[AcquiredRange]:
        # Without a lock: another load() may be at work on the ledger.
        found = self._store.read(self._options.group_id)
        load = found.loads.get(self._load_id)
        if load is not None and load.is_complete:
            return self._read(found.ledger, load)
        ledger = self._store.load(self._options.group_id, patience=PATIENCE)
        try:
            # The process that had the lock may have planned the same load().
            load = self._store.load_of(self._load_id)
            if load is None or not load.is_complete:
                load = self._acquire_load(ledger, load)
        finally:
            self._store.close()
        return self._read(ledger, load)

    def _acquire_load(self, ledger: Ledger, known: Load | None) -> Load:
        if known is not None:
            self._check_kept(ledger, known)
        begin = ledger.end
        load = self._store.begin_load(self._load_id, self._start(ledger))
        driver = self._driver(self._options, self._store, ledger)
        try:
            driver.start()
            self._acquire(driver, begin, load.acquired)
            # What is in hand is entered by this, and belongs to this batch.
            driver.leave()
            return self._store.complete_load(self._load_id)
        finally:
            driver.stop()

    def _acquire(self, driver: Driver, end: int, acquired: int) -> None:
        """Acquire what the topics hold now, up to the limit, in whole fetches."""
        limit = inf
        if self._options.max_offsets_per_trigger is not None:
            limit = end - acquired + self._options.max_offsets_per_trigger
        patience = IdleTimeout(self._options.idle_timeout, driver.goal.most)
        while end < limit:
            patience.most = driver.goal.most
            over = patience.is_over(end, driver.idle_since(), self._clock())
            if (driver.goal.reached or over) and driver.conclude():
                break
            end = driver.wait_beyond(end, LOOK)
            driver.planned(end)

    def _read(self, ledger: Ledger, load: Load) -> list[AcquiredRange]:
        self._check_kept(ledger, load)
        if load.start > ledger.end:
            raise LedgerLostError(
                f"startingPosition is {load.start}, and the ledger in "
                f"{self._options.ledger_location} ends at {ledger.end}"
            )
        return self._between(ledger, load.ranges)

    def _check_kept(self, ledger: Ledger, load: Load) -> None:
        first = next((first for first, _ in load.ranges), ledger.begin)
        if first < ledger.begin:
            raise LedgerLostError(
                f"this load() reads position {first} of the ledger in "
                f"{self._options.ledger_location}, which begins at {ledger.begin}: a "
                "stream on that ledger has committed what this load() acquired; call "
                "load() again (with another loadId, if it has one) for what is new"
            )

    def _between(
        self, ledger: Ledger, ranges: Iterable[tuple[int, int]]
    ) -> list[AcquiredRange]:
        found: list[AcquiredRange] = []
        for start, end in ranges:
            _log.info("reads the ledger", start=start, end=end)
            found += ledger.between(start, end)
        return found
