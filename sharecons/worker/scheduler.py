"""Decides which records a worker processes next, and how many it takes.

Theory of operation
-------------------
A record that the worker holds is ready, running, waiting for its next attempt, blocked
by an earlier record of its lane, or closing: it has an outcome that is being carried
out (a dead letter is being written, for example).

With `key_order`, records with one key form a lane. Only the first record of a lane may
run; it blocks the others until it is done, through all of its attempts. Records without
a key have no lane.

Records that wait, are blocked or are closing use no slot, so the worker takes others
meanwhile, up to its limits of records and bytes. Attempts that are due start before
records that were never tried.
"""

import enum
import heapq
import math
from collections import deque
from typing import Any, Final, final

__all__ = ["ItemState", "Scheduler", "WorkItem"]

MAX_HELD_FACTOR: Final = 20
"""How many records a worker holds at most, as a multiple of its concurrency."""

MIN_MAX_HELD: Final = 1000


class ItemState(enum.Enum):
    READY = enum.auto()
    BLOCKED = enum.auto()
    RUNNING = enum.auto()
    WAITING = enum.auto()
    CLOSING = enum.auto()
    DONE = enum.auto()


@final
class WorkItem:
    """A record that a worker holds.

    Attributes:
        record: as the consumer delivered it.
        size: bytes of its key, value and headers.
        lane: its key, or None if other records never block it.
        attempt: the number of the present or next attempt; 1 is the first.
        due: when the next attempt may start.
    """

    __slots__ = ("attempt", "due", "lane", "record", "size", "state")

    def __init__(
        self, record: Any, size: int, *, lane: bytes | None = None, attempt: int = 1
    ) -> None:
        self.record = record
        self.size = size
        self.lane = lane
        self.attempt = attempt
        self.due = -math.inf
        self.state = ItemState.READY

    @property
    def is_done(self) -> bool:
        """True if the worker no longer holds it."""
        return self.state is ItemState.DONE


@final
class Scheduler:
    """The records of one worker.

    Args:
        concurrency: how many records run at a time.
        max_bytes: no more records are taken while those held have as many bytes.
        max_held: how many records are held at most; None for a multiple of
            `concurrency`.
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
        self._retries: deque[WorkItem] = deque()
        self._ready: deque[WorkItem] = deque()
        self._waiting: list[tuple[float, int, WorkItem]] = []
        self._wait_count = 0
        self._lanes: dict[bytes, deque[WorkItem]] = {}
        self._stopped = False

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
    def is_idle(self) -> bool:
        """True if no record is held."""
        return not self._held

    def capacity(self, now: float) -> int:
        """Return how many records to take: as many as could start at once."""
        if self._stopped or self._held_bytes >= self._max_bytes:
            return 0
        self._wake(now)
        free = self._concurrency - self._running
        startable = len(self._retries) + len(self._ready)
        return max(0, min(free - startable, self._max_held - len(self._held)))

    def add(self, item: WorkItem) -> None:
        """Add a record that the consumer has delivered."""
        self._held[item] = None
        self._held_bytes += item.size
        if item.lane is not None:
            lane = self._lanes.setdefault(item.lane, deque())
            lane.append(item)
            if len(lane) > 1:
                item.state = ItemState.BLOCKED
                return
        self._ready.append(item)

    def start_next(self, now: float) -> WorkItem | None:
        """Return a record to process now, or None; it is running then."""
        self._wake(now)
        if self._stopped or self._running >= self._concurrency:
            return None
        queue = self._retries or self._ready
        if not queue:
            return None
        item = queue.popleft()
        item.state = ItemState.RUNNING
        self._running += 1
        return item

    def next_due(self) -> float:
        """Return when the next waiting record may be tried; infinity if there is none.

        Records that are due already are not counted.
        """
        return self._waiting[0][0] if self._waiting else math.inf

    def retry(self, item: WorkItem, due: float) -> None:
        """Try a running record again, from `due` on."""
        self._end_run(item)
        item.attempt += 1
        item.due = due
        item.state = ItemState.WAITING
        self._wait_count += 1
        heapq.heappush(self._waiting, (due, self._wait_count, item))

    def close(self, item: WorkItem) -> None:
        """Note that a running record has an outcome; call `remove` once it is done."""
        self._end_run(item)
        item.state = ItemState.CLOSING

    def remove(self, item: WorkItem) -> None:
        """Remove a record in any state: it is settled, or its lock is lost."""
        if item.state is ItemState.DONE:
            return
        match item.state:
            case ItemState.RUNNING:
                self._running -= 1
            case ItemState.READY:
                (self._retries if item in self._retries else self._ready).remove(item)
            case ItemState.WAITING:
                self._waiting = [each for each in self._waiting if each[2] is not item]
                heapq.heapify(self._waiting)
            case _:
                pass
        item.state = ItemState.DONE
        del self._held[item]
        self._held_bytes -= item.size
        self._leave_lane(item)

    def stop(self) -> list[WorkItem]:
        """Start no more records; return those that are not running, to be released.

        Closing ones are not among them. The caller removes what it has released.
        """
        self._stopped = True
        idle = (ItemState.READY, ItemState.BLOCKED, ItemState.WAITING)
        return [item for item in self._held if item.state in idle]

    def _end_run(self, item: WorkItem) -> None:
        assert item.state is ItemState.RUNNING, "only running records end"
        self._running -= 1

    def _wake(self, now: float) -> None:
        """Make the waiting records ready that are due."""
        while self._waiting and self._waiting[0][0] <= now:
            _, _, item = heapq.heappop(self._waiting)
            item.state = ItemState.READY
            self._retries.append(item)

    def _leave_lane(self, item: WorkItem) -> None:
        if item.lane is None:
            return
        lane = self._lanes[item.lane]
        was_first = lane[0] is item
        lane.remove(item)
        if not lane:
            del self._lanes[item.lane]
        elif was_first:
            lane[0].state = ItemState.READY
            self._ready.append(lane[0])
