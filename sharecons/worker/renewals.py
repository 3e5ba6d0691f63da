"""Decides when locks of held records are renewed, and when they are lost (KIP-1222).

Every record that a worker holds is renewed: running, waiting or blocked. A renewal is
due at half of the lock, and is repeated until it is confirmed or the lock has ended.
After `max_lease` seconds a record is not renewed any more, so that a handler that hangs
does not keep it for ever; its lock then ends at its last deadline.
"""

import heapq
import math
from collections.abc import Callable
from typing import Final, NamedTuple, final

from sharecons.worker.scheduler import WorkItem

__all__ = ["DueLocks", "RenewalSchedule"]

RENEW_AT: Final = 0.5
"""The fraction of the lock after which it is renewed."""

REPEAT_AFTER: Final = 0.15
"""The fraction of the lock after which an unconfirmed renewal is repeated."""


class DueLocks(NamedTuple):
    """Records with a lock that needs an action now.

    Attributes:
        renew: records whose locks are to be renewed; those with one deadline together.
        lost: records whose locks have ended.
    """

    renew: list[WorkItem]
    lost: list[WorkItem]


class _Lock:
    __slots__ = ("deadline", "duration", "lease_end", "next_check")

    def __init__(self, deadline: float, duration: float, lease_end: float) -> None:
        self.deadline = deadline
        self.duration = duration
        self.lease_end = lease_end
        self.next_check = 0.0


@final
class RenewalSchedule:
    """The locks of the records that a worker holds; times in seconds.

    Args:
        max_lease: how long a record is held at most, from its delivery on.
        renews: False if the broker or the group does not allow renewals.

    Attributes:
        renews: as the argument; `stop_renewing` sets it to False.
    """

    def __init__(self, max_lease: float = math.inf, *, renews: bool = True) -> None:
        self._max_lease = max_lease
        self.renews = renews
        self._locks: dict[WorkItem, _Lock] = {}
        self._checks: list[tuple[float, int, WorkItem]] = []
        self._check_count = 0

    def add(
        self, item: WorkItem, *, deadline: float, duration: float, now: float
    ) -> float:
        """Add a record whose lock of `duration` seconds ends at `deadline`.

        Return when to call `take_due` for it.
        """
        lock = self._locks[item] = _Lock(deadline, duration, now + self._max_lease)
        self._plan_renewal(item, lock)
        return lock.next_check

    def remove(self, item: WorkItem) -> None:
        """Forget a record: it is settled or lost."""
        self._locks.pop(item, None)

    def stop_renewing(self) -> bool:
        """Renew no more locks; return whether any were renewed until now."""
        renewed, self.renews = self.renews, False
        return renewed

    def next_check(self) -> float:
        """Return when to call `take_due` next; infinity if there is no record."""
        while self._checks:
            when, _, item = self._checks[0]
            lock = self._locks.get(item)
            if lock is not None and lock.next_check == when:
                return when
            heapq.heappop(self._checks)  # removed or planned again
        return math.inf

    def take_due(
        self, now: float, deadline_of: Callable[[WorkItem], float]
    ) -> DueLocks:
        """Return the records to renew now, and those whose locks have ended.

        A lost record is forgotten. A record is returned again until its renewal is
        confirmed.

        Args:
            deadline_of: returns the present deadline of a lock, which is later than the
                one before if a renewal was confirmed.
        """
        due = DueLocks([], [])
        while self.next_check() <= now:
            _, _, item = heapq.heappop(self._checks)
            lock = self._locks[item]
            confirmed = deadline_of(item)
            if confirmed > lock.deadline:
                # The first duration is what was left of the lock at the delivery.
                lock.duration = max(lock.duration, confirmed - now)
                lock.deadline = confirmed
                self._plan_renewal(item, lock)
            elif now >= lock.deadline:
                due.lost.append(item)
                del self._locks[item]
            elif self._may_renew(lock):
                due.renew.append(item)
                self._plan(item, lock, now + REPEAT_AFTER * lock.duration)
            else:
                self._plan(item, lock, lock.deadline)
        return due

    def _plan_renewal(self, item: WorkItem, lock: _Lock) -> None:
        when = lock.deadline
        if self._may_renew(lock):
            when -= (1.0 - RENEW_AT) * lock.duration
        self._plan(item, lock, when)

    def _may_renew(self, lock: _Lock) -> bool:
        return self.renews and lock.deadline < lock.lease_end

    def _plan(self, item: WorkItem, lock: _Lock, when: float) -> None:
        lock.next_check = min(when, lock.deadline)
        self._check_count += 1
        heapq.heappush(self._checks, (lock.next_check, self._check_count, item))
