"""Decides which tasks run alone, because they perhaps end their process.

A task that ends its process takes a delivery from each task that the process holds.
Brokers count deliveries, and not why they ended. So a task that was delivered several
times without an acknowledgement is suspect.

A suspect starts once no other task runs. Until it ends, no other task starts and
nothing is fetched. Both last for LIMIT seconds at most, and tasks that have outlived
the wait of one suspect delay no other one. While MAX_HUNG suspects run that have
outlived LIMIT, no task is suspect: tasks are slow, and do not end their process.

Tasks that are held beside a suspect lose a delivery with it, started or not. So after a
suspect, and at the start of a process, one record is taken (one of each leader), and
then twice as many each time. A suspect starts once all leaders have responded, since
`HeldTasks` chooses among the suspects that are held.

`sharecons.worker.machine.isolation` has the same times and deliveries.
"""

from collections.abc import Sequence
from typing import Final, final

from sharecons.taskiq.held_tasks import HeldTask

__all__ = ["LIMIT", "MAX_HUNG", "Isolation", "deliveries_left"]

LIMIT: Final = 10.0
"""Seconds for which a suspect waits for other tasks, and for which it runs alone."""

MAX_HUNG: Final = 3
"""The number of suspects that can outlive LIMIT."""

MAX_TAKEN: Final = 1 << 20

DEFAULT_DELIVERY_LIMIT: Final = 5
"""Kafka's default of share.delivery.count.limit (KIP-932)."""


def deliveries_left(delivery_count: int, delivery_limit: int) -> int | None:
    """Return how many deliveries follow the present one of a suspect; None of others.

    A task is suspect on its last three deliveries, but not on its first. If several
    suspects are held when one ends the process, the others have another delivery.

    Args:
        delivery_limit: how often the group delivers a record; 0 if it is not known.
    """
    left = (delivery_limit or DEFAULT_DELIVERY_LIMIT) - delivery_count
    return max(0, left) if left <= 2 and delivery_count >= 2 else None


@final
class Isolation:
    """The suspects of one process; times are on the event loop's clock.

    Attributes:
        max_taken: how many records to take at a time.
    """

    def __init__(self) -> None:
        self.max_taken = 1
        self._alone: HeldTask | None = None
        self._waiting: HeldTask | None = None
        self._until = 0.0
        self._hung: set[HeldTask] = set()
        self._not_awaited = 0

    def on_taken(self, items: Sequence[HeldTask]) -> None:
        """Limit what is taken next, after these tasks were taken."""
        if any(item.is_suspect for item in items):
            self.max_taken = 1
        elif items:
            self.max_taken = min(2 * self.max_taken, MAX_TAKEN)

    def is_running(self, now: float) -> bool:
        """Return whether a suspect runs alone: no other starts, none is fetched."""
        if self._alone is not None and now >= self._until:
            self._hung.add(self._alone)
            self._alone = None
        return self._alone is not None

    def allows(self, item: HeldTask, now: float, *, busy: int) -> bool:
        """Return whether a task can start now.

        Args:
            busy: how many tasks run, or are being written again.
        """
        self._not_awaited = min(self._not_awaited, busy)
        if self.is_running(now):
            return False
        if not self._isolates(item) or busy <= self._not_awaited:
            return True
        if self._waiting is not item:
            self._waiting, self._until = item, now + LIMIT
        if now < self._until:
            return False
        self._not_awaited = busy
        return True

    def on_started(self, item: HeldTask, now: float) -> None:
        """Begin the time of a suspect; other tasks change nothing."""
        if self._isolates(item):
            self._alone, self._until = item, now + LIMIT

    def on_ended(self, item: HeldTask) -> None:
        """End the time of a suspect, whose task has ended; others change nothing."""
        self._hung.discard(item)
        if self._alone is item:
            self._alone = None

    def next_check(self, next_due: float, *, is_blocked: bool) -> float:
        """Return when a task can start without another event.

        Args:
            next_due: when the next delayed task is due.
            is_blocked: `allows` has returned False for the next task.
        """
        if is_blocked:
            return self._until
        return next_due if self._alone is None else min(self._until, next_due)

    def _isolates(self, item: HeldTask) -> bool:
        return item.is_suspect and len(self._hung) < MAX_HUNG
