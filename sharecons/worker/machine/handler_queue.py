"""The records of one handler: which are processed next, and how many it needs.

Theory of operation
-------------------
A record that the worker holds is ready, running, waiting for its next attempt, blocked
by an earlier record of its lane, or being copied: it is written to a retry topic or to
the dead-letter topic.

With `key_order`, records with one key form a lane. Only the first record of a lane can
run; it blocks the others until it is done, through all of its attempts. Records without
a key have no lane.

Records that wait, are blocked or are copied are in no call, so the worker takes others
meanwhile, up to the limits of records and bytes. Records that wait count for the bytes
only: the windows of their partitions limit their number. Blocked records have a limit
of their own, since a share group cannot fetch all keys but one: with a limit for all
records, one slow key would stop the others. Attempts that are due start before records
that were never tried.

A handler can have tens of thousands of records, and can lose or release all of them in
one step. So leaving the queue of ready records, or the heap of waiting ones, takes
constant time: the entry stays there, and is skipped because of the record's state.
"""

import heapq
import math
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, final

from sharecons.worker.machine.batch_start import BatchStart
from sharecons.worker.machine.item import Call, ItemState, WorkItem
from sharecons.worker.machine.settings import HandlerSettings

__all__ = ["HandlerQueue"]

MAX_HELD_FACTOR: Final = 20
"""How many records are held at most, as a multiple of the number that can run."""

MIN_MAX_HELD: Final = 1000

MAX_BLOCKED: Final = 20_000
"""Records that are blocked, of all keys, above which no more records are taken."""

NEARLY_FULL: Final = 0.75
"""The fraction of its bytes above which records that wait move to a retry topic."""

MAX_EARLY: Final = 0.5
"""The fraction of its bytes that copies of retry topics have before they are due."""

MIN_STALE: Final = 100
"""Entries of records that no longer wait below which they are not dropped."""


@final
class HandlerQueue:
    """The records of one handler.

    Args:
        settings: of the handler.
        concurrency: how many of its calls run at a time.
        max_bytes: no more records are taken while its records have this many bytes.
        max_held: how many records are held at most, beside the waiting and the blocked
            ones; None for a multiple of the number that can run.
        max_blocked: no more records are taken while this many are blocked.
        claim: takes a redelivered record to run it alone, and returns whether it does.

    Attributes:
        settings, concurrency: as the arguments.
        calls: how many of its calls have started and have not ended.
        unusable: how many calls cannot be made at present, because threads of
            cancelled ones do not end.
        running: how many records run.
        waiting_count: how many records wait for their next attempt.
        blocked_count: how many records wait behind another one of their key.
        copying: how many records are being written to another topic.
        held_bytes: the bytes of its records.
        early_bytes: the part of them in copies of retry topics that are not due.
    """

    def __init__(
        self,
        settings: HandlerSettings,
        *,
        concurrency: int,
        max_bytes: int,
        max_held: int | None = None,
        max_blocked: int = MAX_BLOCKED,
        claim: Callable[[WorkItem], bool] = lambda item: False,
    ) -> None:
        self._claim = claim
        self.settings = settings
        self.concurrency = concurrency
        self._max_records = settings.max_records
        can_run = concurrency * settings.max_records
        self.max_held = max_held or max(MAX_HELD_FACTOR * can_run, MIN_MAX_HELD)
        self.max_bytes = max_bytes
        self._max_blocked = max_blocked
        self._batch_start = BatchStart(settings.max_records, settings.max_wait)
        self._held: dict[WorkItem, None] = {}
        self.copying = 0
        self._copying_bytes = 0
        self._ready_count = 0
        self._retries: deque[WorkItem] = deque()
        self._ready: deque[WorkItem] = deque()
        self._waiting: list[tuple[float, int, WorkItem]] = []
        self._wait_number = 0
        self._lanes: dict[bytes, OrderedDict[WorkItem, None]] = {}
        self.calls = 0
        self.unusable = 0
        self.running = 0
        self.waiting_count = 0
        self.blocked_count = 0
        self.held_bytes = 0
        self.early_bytes = 0

    @property
    def held(self) -> tuple[WorkItem, ...]:
        """All records that are not done, in the order in which they were added."""
        return tuple(self._held)

    @property
    def waiting(self) -> tuple[WorkItem, ...]:
        """The records that are not due, in any order."""
        return tuple(
            item for _, _, item in self._waiting if item.state is ItemState.WAITING
        )

    @property
    def held_count(self) -> int:
        return len(self._held)

    def ready_count(self, now: float) -> int:
        """Return how many records could start, if calls were free."""
        if self._waiting:
            self.wake(now)
        return self._ready_count

    def usable(self, calls: int) -> int:
        """Return how many calls the handler can make, up to `calls`."""
        return min(self.concurrency - self.unusable, calls)

    def is_due(self, now: float) -> bool:
        """Return whether a call could start now, if calls were free."""
        ready = self.ready_count(now)
        return bool(ready) and self._batch_start.is_due(ready, now)

    @property
    def is_saturated(self) -> bool:
        """True if no call can start before another one ends."""
        return self.calls >= self.concurrency - self.unusable

    def capacity(self, now: float) -> int:
        """Return how many records to take: the number that could start now."""
        if self.is_full:
            return 0
        usable = self.concurrency - self.unusable
        startable = self.ready_count(now)
        free = usable * self._max_records - self.running
        return max(0, min(free - startable, self.max_held - self.active_count))

    @property
    def active_count(self) -> int:
        """How many records are held, beside the waiting and the blocked ones."""
        return len(self._held) - self.waiting_count - self.blocked_count

    @property
    def is_full(self) -> bool:
        """True if no records are taken, whether calls are free or not."""
        return self.has_all_bytes or self.blocked_count >= self._max_blocked

    @property
    def has_all_bytes(self) -> bool:
        """True if its records have the bytes that they can have."""
        return self._counted_bytes >= self.max_bytes

    @property
    def has_early_copies(self) -> bool:
        """True if no further records of its retry topics are needed."""
        return self.early_bytes >= MAX_EARLY * self.max_bytes

    @property
    def _counted_bytes(self) -> float:
        """The bytes that count: one fetch can have more early copies than allowed."""
        excess = self.early_bytes - MAX_EARLY * self.max_bytes
        return self.held_bytes - max(0.0, excess)

    @property
    def is_nearly_full(self) -> bool:
        """True if records that wait must move, so that others can be taken."""
        staying = self._counted_bytes - self._copying_bytes
        return staying >= NEARLY_FULL * self.max_bytes

    def first_of_longest_lane(self) -> tuple[WorkItem, int] | None:
        """Return the record that blocks the most others, and how many; or None."""
        if not self.blocked_count:
            return None
        lane = max(self._lanes.values(), key=len)
        return next(iter(lane)), len(lane) - 1

    def add(self, item: WorkItem) -> None:
        """Add a record that the consumer has delivered.

        One with a due time waits until then, and has no lane.
        """
        self._held[item] = None
        self.held_bytes += item.size
        if item.due > -math.inf:
            self._wait(item)
            return
        if item.lane is not None:
            lane = self._lanes.setdefault(item.lane, OrderedDict())
            lane[item] = None
            if len(lane) > 1:
                item.state = ItemState.BLOCKED
                self.blocked_count += 1
                item.lease_end = math.inf  # it begins with the first call
                return
        self._make_ready(item, self._ready)

    def next_call(self, now: float, is_stopping: bool) -> Call | None:
        """Return a call that starts now, or None; its records are running then.

        Args:
            is_stopping: start incomplete batches immediately.
        """
        if self.calls >= self.concurrency - self.unusable:
            return None
        if self._waiting:
            self.wake(now)
        if self._max_records > 1:
            return self._next_batch(now, is_stopping)
        return self._start_call(1) if self._ready_count else None

    def _next_batch(self, now: float, is_stopping: bool) -> Call | None:
        ready = self._ready_count
        if not (self._batch_start.is_due(ready, now) or (ready and is_stopping)):
            return None
        self._batch_start.on_started()
        return self._start_call(min(ready, self._max_records))

    def _start_call(self, count: int) -> Call:
        """Start a call of ready records; there are `count` or more."""
        items: list[WorkItem] = []
        call = Call(items)
        call.queue = self
        while len(items) < count:
            item = (self._retries or self._ready).popleft()
            if item.state is ItemState.READY:
                item.state = ItemState.RUNNING
                item.call = call
                items.append(item)
        self._ready_count -= count
        self.running += count
        self.calls += 1
        return call

    def end_isolation(self, item: WorkItem) -> None:
        """Let a record that `claim` has taken start as all others."""
        item.state = ItemState.READY
        self._ready_count += 1
        self._retries.appendleft(item)

    def start_alone(self, item: WorkItem) -> Call:
        """Start a call of a record that `claim` has taken."""
        self.end_isolation(item)
        return self._start_call(1)

    def next_due(self) -> float:
        """Return when a call can start without another event; infinity if none can.

        Records that are due already are not counted.
        """
        if self.is_saturated:
            return math.inf
        return min(self._next_wait_end(), self._batch_start.next_due())

    def next_ack(self) -> float:
        """Return the earliest time at which a held record can have an outcome.

        That is any time, unless all records wait, or are blocked by one that waits.
        """
        is_busy = self.running or self.copying or self._ready_count
        return -math.inf if is_busy else self._next_wait_end()

    def _next_wait_end(self) -> float:
        """Return when the next waiting record is due."""
        while self._waiting:
            due, _, item = self._waiting[0]
            if item.state is ItemState.WAITING:
                return due
            heapq.heappop(self._waiting)
        return math.inf

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
        """Count a record as copying; call `remove` once the copy is confirmed."""
        self._leave_state(item)
        item.state = ItemState.COPYING
        self.copying += 1
        self._copying_bytes += item.size

    def remove(self, item: WorkItem) -> None:
        """Remove a record in any state: it is settled, or its lock is lost."""
        if item.state is ItemState.DONE:
            return
        self._leave_state(item)
        item.state = ItemState.DONE
        del self._held[item]
        self.held_bytes -= item.size
        self._leave_lane(item)

    def _leave_state(self, item: WorkItem) -> None:
        match item.state:
            case ItemState.RUNNING:
                self.running -= 1
            case ItemState.COPYING:
                self.copying -= 1
                self._copying_bytes -= item.size
            case ItemState.READY:
                self._ready_count -= 1
            case ItemState.WAITING:
                self._on_wait_ended(item)
                self._forget_stale_waits()
            case ItemState.BLOCKED:
                self.blocked_count -= 1

    def _forget_stale_waits(self) -> None:
        """Drop the entries of records that no longer wait, once they are the most."""
        if len(self._waiting) > 2 * self.waiting_count + MIN_STALE:
            self._waiting = [
                each for each in self._waiting if each[2].state is ItemState.WAITING
            ]
            heapq.heapify(self._waiting)

    def _make_ready(self, item: WorkItem, queue: deque[WorkItem]) -> None:
        if item.attempt > 1 and self._claim(item):
            return
        item.state = ItemState.READY
        self._ready_count += 1
        queue.append(item)

    def _wait(self, item: WorkItem) -> None:
        item.state = ItemState.WAITING
        self.waiting_count += 1
        if item.call is None:
            self.early_bytes += item.size
        self._wait_number += 1
        heapq.heappush(self._waiting, (item.due, self._wait_number, item))

    def _on_wait_ended(self, item: WorkItem) -> None:
        self.waiting_count -= 1
        if item.call is None:
            self.early_bytes -= item.size

    def wake(self, now: float) -> None:
        """Make the waiting records ready that are due."""
        while self._waiting and self._waiting[0][0] <= now:
            _, _, item = heapq.heappop(self._waiting)
            if item.state is ItemState.WAITING:
                self._on_wait_ended(item)
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
            self.blocked_count -= 1
            self._make_ready(first, self._ready)
