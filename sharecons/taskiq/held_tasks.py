"""Decides which held task is given to taskiq's receiver next, and how many are fetched.

A worker process holds a task's record from its delivery to its acknowledgement. Until
the receiver takes it, the task is ready, or it waits until it is due. Delayed tasks
come first when they are due, as they are older.

The receiver requests one task at a time, when it can run it; its capacity is not known
otherwise. If it requests one while n tasks run, its capacity is at least n + 1. No more
tasks are fetched than it can run, since a task that waits in this process cannot run in
another one.
"""

import enum
import heapq
import math
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, final

__all__ = [
    "MAX_DELAYED",
    "HeldTask",
    "HeldTasks",
    "ReceiverCapacity",
    "TaskLease",
    "place_of",
]

MAX_DELAYED: Final = 1000
"""The number of delayed tasks above which no more records are taken: half of the
records that a broker locks per partition by default (2,000)."""


class TaskState(enum.Enum):
    """READY and DELAYED tasks wait for the receiver. DONE tasks are no longer held."""

    READY = enum.auto()
    DELAYED = enum.auto()
    RUNNING = enum.auto()
    DONE = enum.auto()


class TaskLease(NamedTuple):
    """How long a task is held, in seconds."""

    max_lock_time: float


@final
class HeldTask:
    """The record of a task, from its delivery to its acknowledgement.

    Attributes:
        record: as the broker delivered it.
        lease_end: when it is released, even if the task still runs.
        deliveries_left: of a task that perhaps ends its process (see `isolation`);
            None of others.
    """

    __slots__ = ("deliveries_left", "lease_end", "record", "settings", "state")

    def __init__(
        self,
        record: Any,
        settings: TaskLease,
        lease_end: float = math.inf,
        *,
        deliveries_left: int | None = None,
    ) -> None:
        self.deliveries_left = deliveries_left
        self.record = record
        self.settings = settings
        self.lease_end = lease_end
        self.state = TaskState.READY

    @property
    def is_suspect(self) -> bool:
        """True if it perhaps ends its process."""
        return self.deliveries_left is not None

    @property
    def is_done(self) -> bool:
        """True if it is no longer held."""
        return self.state is TaskState.DONE

    @property
    def has_outcome(self) -> bool:
        """True once it is acknowledged, or its lock is lost."""
        return self.is_done


@final
class HeldTasks:
    """The tasks of one worker process; times are on the event loop's clock."""

    def __init__(self) -> None:
        self._held: dict[HeldTask, None] = {}
        self._ready: deque[HeldTask] = deque()
        self._suspects: list[HeldTask] = []
        self._delayed: list[tuple[float, int, HeldTask]] = []
        self._added = 0
        self._waiting = 0

    @property
    def held(self) -> tuple[HeldTask, ...]:
        """All tasks that are held."""
        return tuple(self._held)

    @property
    def is_full(self) -> bool:
        """True while too many tasks are delayed to take more."""
        return self._waiting >= MAX_DELAYED

    def add(self, item: HeldTask, due: float, now: float) -> None:
        """Add a task that can run at `due` or later."""
        self._held[item] = None
        if due <= now:
            self._queue_of(item).append(item)
            return
        item.state = TaskState.DELAYED
        self._added += 1
        self._waiting += 1
        heapq.heappush(self._delayed, (due, self._added, item))

    def peek(self, now: float) -> HeldTask | None:
        """Return the next task without a change; None if none can be given now."""
        if self.next_due() <= now:
            return self._delayed[0][2]
        if self._suspects:
            return _first_suspect(self._suspects)
        return self._ready[0] if self._ready else None

    def next_due(self) -> float:
        """Return when the next delayed task is due; infinity if there is none."""
        while self._delayed and self._delayed[0][2].is_done:
            heapq.heappop(self._delayed)
        return self._delayed[0][0] if self._delayed else math.inf

    def take_next(self, now: float) -> HeldTask | None:
        """Return the next task, which now runs; None if none can be given now."""
        item = self.peek(now)
        if item is None:
            return None
        if item.state is TaskState.DELAYED:
            heapq.heappop(self._delayed)
            self._waiting -= 1
        else:
            self._queue_of(item).remove(item)
        item.state = TaskState.RUNNING
        return item

    def remove(self, item: HeldTask) -> None:
        """Remove a task that is acknowledged, or whose lock is lost."""
        if item.is_done:
            return
        if item.state is TaskState.READY:
            self._queue_of(item).remove(item)
        elif item.state is TaskState.DELAYED:
            self._waiting -= 1
        item.state = TaskState.DONE
        del self._held[item]

    def _queue_of(self, item: HeldTask) -> "deque[HeldTask] | list[HeldTask]":
        return self._suspects if item.is_suspect else self._ready

    def not_given(self) -> list[HeldTask]:
        """Return the tasks that the receiver has not taken."""
        return [item for item in self._held if item.state is not TaskState.RUNNING]


def _first_suspect(suspects: Sequence[HeldTask]) -> HeldTask:
    """Return the suspect to start first: one with the fewest deliveries left.

    Each leader returns at least one record, so after a crash the same suspects arrive
    together again. Each delivery begins with another one, so that a task that ends its
    process is not always before the others: the first, the last, one in the middle.
    """
    fewest = min(each.deliveries_left or 0 for each in suspects)
    last = [each for each in suspects if (each.deliveries_left or 0) == fewest]
    last.sort(key=lambda each: (each.record.partition, each.record.offset))
    return last[(len(last) // 2, -1, 0)[fewest % 3]]


@final
class ReceiverCapacity:
    """How many tasks the receiver can run, as far as its requests have shown.

    Attributes:
        running: tasks that it has received and not ended.
    """

    def __init__(self) -> None:
        self.running = 0
        self._shown = 1

    @property
    def free(self) -> int:
        """The minimum number of tasks that it takes now; 0 if it is full."""
        return max(0, self._shown - self.running)

    def restart(self) -> None:
        """Forget the capacity of the previous receiver."""
        self._shown = 1

    def on_requested(self) -> None:
        """Raise the capacity if the receiver requests one more than it runs."""
        self._shown = max(self._shown, self.running + 1)

    def on_given(self) -> None:
        """Count a task that the receiver has received."""
        self.running += 1

    def on_ended(self) -> None:
        """Subtract a task that has ended or was dropped."""
        self.running -= 1


def place_of(record: Any) -> dict[str, Any]:
    """Return the fields of log lines about a record."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "delivery_count": record.delivery_count,
    }
