"""Decides which records a worker processes next, and how many it takes.

Theory of operation
-------------------
A record that the worker holds is ready, running, waiting for its next attempt, blocked
by an earlier record of its lane, or closing: it has an outcome that is being carried
out (a dead letter is being written, for example).

With `key_order`, records with one key form a lane. Only the first record of a lane can
run; it blocks the others until it is done, through all of its attempts. Records without
a key have no lane.

Records that wait, are blocked or are closing use no slot, so the worker takes others
meanwhile, up to its limits of records and bytes. Records that wait count for the bytes
only: the windows of their partitions limit their number. Attempts that are due start
before records that were never tried.
"""

import enum
import heapq
import math
from collections import deque
from typing import TYPE_CHECKING, Any, Final, final

from sharecons.worker.dead_letter_headers import Origin

if TYPE_CHECKING:
    from sharecons.worker.slots import CallSlot

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
        record: as the broker delivered it, with bytes as key and value.
        size: bytes of its key, value and headers.
        lane: its key, or None if other records never block it.
        attempt: the number of the present or next attempt; 1 is the first.
        due: when the next attempt can start.
        origin: the record that failed before, if this one is of a retry topic.
        argument: the record for the handler; deserialized before the first call.
        error: what the last attempt raised.
        slot: the slot of the last call.
    """

    __slots__ = (
        "argument",
        "attempt",
        "due",
        "error",
        "lane",
        "origin",
        "record",
        "size",
        "slot",
        "state",
    )

    def __init__(
        self,
        record: Any,
        size: int,
        *,
        lane: bytes | None = None,
        attempt: int = 1,
        due: float = -math.inf,
        origin: Origin | None = None,
    ) -> None:
        self.record = record
        self.size = size
        self.lane = lane
        self.attempt = attempt
        self.due = due
        self.origin = origin
        self.argument = record
        self.error: Exception | None = None
        self.slot: CallSlot | None = None
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
        max_bytes: no more records are taken while the held records have this many
            bytes.
        max_held: how many records are held at most, beside the waiting ones; None for
            a multiple of `concurrency`.
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
        return tuple(item for _, _, item in self._waiting)

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

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
        return len(self._retries) + len(self._ready)

    def capacity(self, now: float) -> int:
        """Return how many records to take: the number that could start now."""
        if self._held_bytes >= self._max_bytes:
            return 0
        startable = self.ready_count(now)
        free = self._concurrency - self._running
        counted = len(self._held) - len(self._waiting)
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
            lane = self._lanes.setdefault(item.lane, deque())
            lane.append(item)
            if len(lane) > 1:
                item.state = ItemState.BLOCKED
                return
        self._ready.append(item)

    def start_next(self, now: float) -> WorkItem | None:
        """Return a record to process now, or None; it is running then."""
        self._wake(now)
        if self._running >= self._concurrency:
            return None
        queue = self._retries or self._ready
        if not queue:
            return None
        item = queue.popleft()
        item.state = ItemState.RUNNING
        self._running += 1
        return item

    def next_due(self) -> float:
        """Return when the next waiting record can be tried; infinity if there is none.

        Records that are due already are not counted.
        """
        return self._waiting[0][0] if self._waiting else math.inf

    def lane_behind(self, item: WorkItem) -> list[WorkItem]:
        """Return the records of its lane that come after this one, in order."""
        if item.lane is None:
            return []
        lane = list(self._lanes[item.lane])
        return lane[lane.index(item) + 1 :]

    def retry(self, item: WorkItem, due: float) -> None:
        """Try a running record again, at `due` or later."""
        self._end_run(item)
        item.attempt += 1
        item.due = due
        self._wait(item)

    def end_wait(self, item: WorkItem) -> None:
        """Note that a waiting record has an outcome; call `remove` once it is done."""
        assert item.state is ItemState.WAITING, "only waiting records"
        self._leave_waiting(item)
        item.state = ItemState.CLOSING

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
                self._leave_waiting(item)
            case _:
                pass
        item.state = ItemState.DONE
        del self._held[item]
        self._held_bytes -= item.size
        self._leave_lane(item)

    def _wait(self, item: WorkItem) -> None:
        item.state = ItemState.WAITING
        self._wait_count += 1
        heapq.heappush(self._waiting, (item.due, self._wait_count, item))

    def _leave_waiting(self, item: WorkItem) -> None:
        self._waiting = [each for each in self._waiting if each[2] is not item]
        heapq.heapify(self._waiting)

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
