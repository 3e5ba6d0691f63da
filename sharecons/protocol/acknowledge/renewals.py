"""Decides when locks of held records are renewed, and when they are lost (KIP-1222).

Every record that a worker or taskiq holds is renewed: running, waiting or blocked. A
renewal is due at half of the lock, and is repeated until it is confirmed or the lock
has ended. At the end of its lease a record is reported while it still has the lock, so
that a handler that hangs does not keep it for ever.
"""

import heapq
import math
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, Protocol, TypeVar, final

__all__ = ["DueLocks", "HeldRecord", "LeaseSettings", "RenewalSchedule"]

RENEW_AT: Final = 0.5
"""The fraction of the lock after which it is renewed: late enough that most records are
settled before, early enough for three repeats of a lost renewal."""

REPEAT_AFTER: Final = 0.15
"""The fraction of the lock after which an unconfirmed renewal is repeated."""


MIN_LEASE: Final = 0.1
"""Seconds until a lease that has not begun is looked at again."""


class LeaseSettings(Protocol):
    """The settings that records of one handler have in common."""

    @property
    def max_lock_time(self) -> float:
        """The seconds of a lease."""
        ...


class HeldRecord(Protocol):
    """A record whose lock is kept: an item of a worker, or a task of taskiq."""

    @property
    def settings(self) -> LeaseSettings: ...

    @property
    def lease_end(self) -> float:
        """When it is held no longer; infinity if its lease has not begun."""
        ...

    @property
    def has_outcome(self) -> bool:
        """True if what becomes of it is decided, so that its lease does not end."""
        ...


H = TypeVar("H", bound=HeldRecord)


class DueLocks(NamedTuple, Generic[H]):
    """Records with a lock that needs an action now.

    Attributes:
        renew: records whose locks must be renewed; equal deadlines are adjacent.
        lost: records whose locks have ended.
        held_too_long: records whose lease has ended.
    """

    renew: list[H]
    lost: list[H]
    held_too_long: list[H]


class _Group(Generic[H]):
    """Records of one handler with one deadline: they arrived or were renewed
    together."""

    # Thousands of records arrive in one response: an entry of the heap for each of them
    # would cost time per record, although most are settled before its time.

    __slots__ = (
        "deadline",
        "duration",
        "items",
        "lease_end",
        "next_check",
        "renew_at",
        "settings",
    )

    def __init__(
        self,
        deadline: float,
        duration: float,
        settings: LeaseSettings,
        lease_end: float,
    ) -> None:
        self.deadline = deadline
        self.duration = duration
        self.settings = settings
        self.lease_end = lease_end
        self.renew_at = deadline - (1.0 - RENEW_AT) * duration
        self.items: dict[H, None] = {}
        self.next_check = 0.0


@final
class RenewalSchedule(Generic[H]):
    """The locks of the records that are held; times in seconds.

    Args:
        renews: False if the broker or the group does not allow renewals.

    Attributes:
        renews: as the argument, until `stop_renewing` and `resume_renewing`.
    """

    def __init__(self, *, renews: bool = True) -> None:
        self.renews = renews
        self._group_of: dict[H, _Group[H]] = {}
        self._newest: _Group[H] | None = None
        self._checks: list[tuple[float, int, _Group[H]]] = []
        self._check_count = 0

    def add(self, item: H, *, deadline: float, duration: float) -> float:
        """Add a record whose lock of `duration` seconds ends at `deadline`.

        Return when to call `take_due` for it.
        """
        group = self._newest
        settings = item.settings
        if (
            group is None
            or group.deadline != deadline
            or group.settings is not settings
        ):
            group = self._newest = _Group(deadline, duration, settings, item.lease_end)
            self._plan(group)
        group.items[item] = None
        self._group_of[item] = group
        return group.next_check

    def remove(self, item: H) -> None:
        """Forget a record: it is settled or lost."""
        group = self._group_of.pop(item, None)
        if group is not None:
            del group.items[item]

    def stop_renewing(self) -> bool:
        """Renew no more locks; return whether any were renewed until now."""
        renewed, self.renews = self.renews, False
        return renewed

    def resume_renewing(self) -> bool:
        """Renew locks again; return whether none were renewed until now."""
        if self.renews:
            return False
        self.renews = True
        for group in dict.fromkeys(self._group_of.values()):
            self._plan(group)
        return True

    def next_check(self) -> float:
        """Return when to call `take_due` next; infinity if there is no record."""
        while self._checks:
            when, _, group = self._checks[0]
            if group.items and group.next_check == when:
                return when
            heapq.heappop(self._checks)  # without records, or planned again
            if group is self._newest:
                self._newest = None
        return math.inf

    def take_due(self, now: float, deadline_of: Callable[[H], float]) -> DueLocks[H]:
        """Return the records to renew now, and those whose locks have ended.

        A lost record is forgotten. A record is returned again until its renewal is
        confirmed.

        Args:
            deadline_of: returns the present deadline of a lock, which is later than the
                one before if a renewal was confirmed.
        """
        due: DueLocks[H] = DueLocks([], [], [])
        while self.next_check() <= now:
            _, _, group = heapq.heappop(self._checks)
            if group is self._newest:
                self._newest = None
            self._move_renewed(group, now, deadline_of)
            if not group.items:
                continue
            if now >= group.deadline:
                due.lost.extend(group.items)
                for item in group.items:
                    self._group_of.pop(item, None)
                group.items.clear()
                continue
            if now >= group.lease_end:
                group.lease_end = _end_leases(group, now, due.held_too_long)
            if self.renews and now >= group.renew_at:
                due.renew.extend(group.items)
                group.renew_at = now + REPEAT_AFTER * group.duration
            self._plan(group)
        return due

    def _move_renewed(
        self, group: _Group[H], now: float, deadline_of: Callable[[H], float]
    ) -> None:
        """Move the records whose renewal is confirmed to groups of their own."""
        renewed: dict[float, _Group[H]] = {}
        for item in tuple(group.items):
            deadline = deadline_of(item)
            if deadline <= group.deadline:
                continue
            target = renewed.get(deadline)
            if target is None:
                # The first duration is what was left of the lock at the delivery.
                duration = max(group.duration, deadline - now)
                target = renewed[deadline] = _Group(
                    deadline, duration, group.settings, group.lease_end
                )
                self._plan(target)
            del group.items[item]
            target.items[item] = None
            self._group_of[item] = target

    def _plan(self, group: _Group[H]) -> None:
        renew_at = group.renew_at if self.renews else math.inf
        group.next_check = min(renew_at, group.lease_end, group.deadline)
        self._check_count += 1
        heapq.heappush(self._checks, (group.next_check, self._check_count, group))


def _end_leases(group: _Group[H], now: float, ended: list[H]) -> float:
    """Append the records whose leases have ended; return when the next lease ends."""
    next_end = math.inf
    for item in group.items:
        if item.lease_end == math.inf:  # it begins now or later
            end = now + max(group.settings.max_lock_time, MIN_LEASE)
            next_end = min(next_end, end)
        elif item.lease_end > now + MIN_LEASE:
            next_end = min(next_end, item.lease_end)
        elif not item.has_outcome:
            ended.append(item)
    return next_end
