"""Decides which records a worker processes next, and how many it takes.

Theory of operation
-------------------
A record that the worker holds is ready, running, waiting for its next attempt, blocked
by an earlier record of its lane, or being copied: it is written to a retry topic or to
the dead-letter topic.

With `key_order`, records with one key form a lane. Only the first record of a lane can
run; it blocks the others until it is done, through all of its attempts. Records without
a key have no lane.

Records that wait, are blocked or are copied use no slot, so the worker takes others
meanwhile, up to its limits of records and bytes. Records that wait count for the bytes
only: the windows of their partitions limit their number. Attempts that are due start
before records that were never tried.

A worker can hold tens of thousands of records, and can lose or release all of them in
one step. So leaving the queue of ready records, or the heap of waiting ones, takes
constant time: the entry stays there, and is skipped because of the record's state.
"""

import heapq
import math
from collections import OrderedDict, deque
from typing import Final, final

from sharecons.worker.machine.item import ItemState, WorkItem

__all__ = ["Scheduler"]

MAX_HELD_FACTOR: Final = 20
"""How many records a worker holds at most, as a multiple of its concurrency."""

MIN_MAX_HELD: Final = 1000

MIN_STALE: Final = 100
"""Entries of records that no longer wait below which they are not dropped."""


@final
class Scheduler:
    """The records of one worker.

    Args:
        concurrency: how many records run at a time.
        max_bytes: no more records are taken while the held records have this many
            bytes.
        max_held: how many records are held at most, beside the waiting ones; None for
            a multiple of `concurrency`.

    Attributes:
        unusable: how many of the `concurrency` records cannot run at present, because
            their threads do not end.
    """

    def __init__(
        self, *, concurrency: int, max_bytes: int, max_held: int | None = None
    ) -> None:
        self._concurrency = concurrency
        self._max_bytes = max_bytes
        self._max_held = max_held or max(MAX_HELD_FACTOR * concurrency, MIN_MAX_HELD)
        self._held: dict[WorkItem, None] = {}
        self._held_bytes = 0
        self._running = 0
        self._copying = 0
        self._ready_count = 0
        self._retries: deque[WorkItem] = deque()
        self._ready: deque[WorkItem] = deque()
        self._waiting_count = 0
        self._waiting: list[tuple[float, int, WorkItem]] = []
        self._wait_number = 0
        self._lanes: dict[bytes, OrderedDict[WorkItem, None]] = {}
        self.unusable = 0

    @property
    def held(self) -> tuple[WorkItem, ...]:
        """All records that are not done, in the order in which they were added."""
        return tuple(self._held)

    @property
    def held_bytes(self) -> int:
        return self._held_bytes

    @property
    def running(self) -> int:
        return self._running

    @property
    def waiting(self) -> tuple[WorkItem, ...]:
        """The records that are not due, in any order."""
        return tuple(
            item for _, _, item in self._waiting if item.state is ItemState.WAITING
        )

    @property
    def waiting_count(self) -> int:
        return self._waiting_count

    @property
    def held_count(self) -> int:
        return len(self._held)

    @property
    def is_idle(self) -> bool:
        """True if no record is held."""
        return not self._held

    def ready_count(self, now: float) -> int:
        """Return how many records could start, if there were slots."""
        self._wake(now)
        return self._ready_count

    def capacity(self, now: float) -> int:
        """Return how many records to take: the number that could start now."""
        if self._held_bytes >= self._max_bytes:
            return 0
        startable = self.ready_count(now)
        free = self._concurrency - self.unusable - self._running
        counted = len(self._held) - self._waiting_count
        return max(0, min(free - startable, self._max_held - counted))

    def add(self, item: WorkItem) -> None:
        """Add a record that the consumer has delivered.

        One with a due time waits until then, and has no lane.
        """
        self._held[item] = None
        self._held_bytes += item.size
        if item.due > -math.inf:
            self._wait(item)
            return
        if item.lane is not None:
            lane = self._lanes.setdefault(item.lane, OrderedDict())
            lane[item] = None
            if len(lane) > 1:
                item.state = ItemState.BLOCKED
                return
        self._make_ready(item, self._ready)

    def start_next(self, now: float) -> WorkItem | None:
        """Return a record to process now, or None; it is running then."""
        self._wake(now)
        if self._running >= self._concurrency - self.unusable:
            return None
        while queue := self._retries or self._ready:
            item = queue.popleft()
            if item.state is ItemState.READY:
                self._ready_count -= 1
                item.state = ItemState.RUNNING
                self._running += 1
                return item
        return None

    def next_due(self) -> float:
        """Return when the next waiting record can be tried; infinity if there is none.

        Records that are due already are not counted.
        """
        while self._waiting:
            due, _, item = self._waiting[0]
            if item.state is ItemState.WAITING:
                return due
            heapq.heappop(self._waiting)
        return math.inf

    def next_ack(self) -> float:
        """Return the earliest time at which a held record can have an outcome.

        That is any time, unless all records wait, or are blocked by one that waits.
        """
        is_busy = self._running or self._copying or self._ready_count
        return -math.inf if is_busy else self.next_due()

    def lane_behind(self, item: WorkItem) -> list[WorkItem]:
        """Return the records of its lane that come after this one, the last one first.

        Takes time for these records only.
        """
        if item.lane is None:
            return []
        behind: list[WorkItem] = []
        for each in reversed(self._lanes[item.lane]):
            if each is item:
                break
            behind.append(each)
        return behind

    def retry(self, item: WorkItem, due: float) -> None:
        """Try a running record again, at `due` or later."""
        item.attempt += 1
        self.postpone(item, due)

    def postpone(self, item: WorkItem, due: float) -> None:
        """Start a record again, at `due` or later, since its attempt has not begun."""
        assert item.state is ItemState.RUNNING, "only running records are tried again"
        self._leave_state(item)
        item.due = due
        self._wait(item)

    def start_copy(self, item: WorkItem) -> None:
        """Note that a record is copied; call `remove` once the copy is confirmed."""
        self._leave_state(item)
        item.state = ItemState.COPYING
        self._copying += 1

    def remove(self, item: WorkItem) -> None:
        """Remove a record in any state: it is settled, or its lock is lost."""
        if item.state is ItemState.DONE:
            return
        self._leave_state(item)
        item.state = ItemState.DONE
        del self._held[item]
        self._held_bytes -= item.size
        self._leave_lane(item)

    def _leave_state(self, item: WorkItem) -> None:
        match item.state:
            case ItemState.RUNNING:
                self._running -= 1
            case ItemState.COPYING:
                self._copying -= 1
            case ItemState.READY:
                self._ready_count -= 1
            case ItemState.WAITING:
                self._waiting_count -= 1
                self._forget_stale_waits()
            case _:
                pass

    def _forget_stale_waits(self) -> None:
        """Drop the entries of records that no longer wait, once they are the most."""
        if len(self._waiting) > 2 * self._waiting_count + MIN_STALE:
            self._waiting = [
                each for each in self._waiting if each[2].state is ItemState.WAITING
            ]
            heapq.heapify(self._waiting)

    def _make_ready(self, item: WorkItem, queue: deque[WorkItem]) -> None:
        item.state = ItemState.READY
        self._ready_count += 1
        queue.append(item)

    def _wait(self, item: WorkItem) -> None:
        item.state = ItemState.WAITING
        self._waiting_count += 1
        self._wait_number += 1
        heapq.heappush(self._waiting, (item.due, self._wait_number, item))

    def _wake(self, now: float) -> None:
        """Make the waiting records ready that are due."""
        while self._waiting and self._waiting[0][0] <= now:
            _, _, item = heapq.heappop(self._waiting)
            if item.state is ItemState.WAITING:
                self._waiting_count -= 1
                self._make_ready(item, self._retries)

    def _leave_lane(self, item: WorkItem) -> None:
        if item.lane is None:
            return
        lane = self._lanes[item.lane]
        del lane[item]
        if not lane:
            del self._lanes[item.lane]
            return
        first = next(iter(lane))
        if first.state is ItemState.BLOCKED:
            self._make_ready(first, self._ready)
