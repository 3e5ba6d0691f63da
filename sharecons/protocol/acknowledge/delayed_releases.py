"""Decides when records whose release is delayed are renewed, and released.

Kafka's brokers have no delays: a released record is available immediately. So the
consumer keeps the locks of these records, and renews them until their release is due
(KIP-1222). Where a lock is not renewed, its record is released before the lock ends.

Theory of operation
-------------------
A call that delays releases makes one `_Delay`: records of a lease with one due time. A
heap has the time of each one's next check. A check first forgets records that were
acknowledged in another way, or delayed again. It splits the others by the deadlines of
their locks, which differ once some were renewed. A lock is renewed after half of the
time that is left of it; these times are rounded to seconds, so that one request renews
many. A deadline that is unchanged after a renewal had its result shows that it failed:
then the lock is not renewed again.
"""

import heapq
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from sharecons._record import RELEASE
from sharecons.protocol.acknowledge.ack_states import DELAYED
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import ResultLog

__all__ = ["DelayedReleases"]

MARGIN: Final = 1.0
"""Seconds before the end of a lock in which it is not relied on: a request can wait for
a fetch, and for the event loop. Less where little is left of the lock."""

MARGIN_FRACTION: Final = 0.15
"""The largest part of the remaining lock that MARGIN takes."""

ROUNDED_FROM: Final = 8.0
"""Renewals are rounded to whole seconds if at least this time is left of the lock."""

MIN_INTERVAL: Final = 0.25
"""Seconds between two looks for the result of a renewal, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Delay:
    """Records of one lease whose releases are due at one time.

    Attributes:
        deadline: when their locks end, at the last check.
        renew_at: when they are renewed, if that is necessary.
        last_chance: when they are released if they are not renewed.
        is_renewed: a renewal was requested for this deadline.
    """

    lease: Lease
    due: float
    offsets: Sequence[int]
    deadline: float = -math.inf
    renew_at: float = -math.inf
    last_chance: float = -math.inf
    is_renewed: bool = False

    def with_deadline(self, deadline: float, now: float) -> "_Delay":
        """Return the delay with other locks, and the times that follow from them."""
        remaining = deadline - now
        renew_at = now + remaining / 2
        if remaining >= ROUNDED_FROM:
            renew_at = math.floor(renew_at)
        margin = max(0.0, min(MARGIN, MARGIN_FRACTION * remaining))
        return replace(
            self,
            deadline=deadline,
            renew_at=renew_at,
            last_chance=deadline - margin,
            is_renewed=False,
        )


@final
class DelayedReleases:
    """The delayed releases of one leader's records.

    Attributes:
        next_check: when to call `update` next; infinity if there is nothing to do.
    """

    def __init__(self, result_log: ResultLog) -> None:
        self.next_check = math.inf
        self._result_log = result_log
        self._checks: list[tuple[float, int, _Delay]] = []
        self._check_count = 0
        self._due: dict[Lease, dict[int, float]] = {}

    def add(self, lease: Lease, offsets: Sequence[int], due: float, now: float) -> None:
        """Add records whose state is DELAYED; this replaces earlier delays."""
        self._due.setdefault(lease, {}).update(dict.fromkeys(offsets, due))
        self._plan(_Delay(lease=lease, due=due, offsets=offsets), now)

    def update(self, now: float, *, renewable: bool) -> None:
        """Release records that are due; renew locks that end before that.

        Args:
            renewable: the broker supports renewals.
        """
        if self._result_log.closed:
            self.clear()
        while self._checks and self._checks[0][0] <= now:
            _, _, delay = heapq.heappop(self._checks)
            self._check(delay, now, renewable=renewable and self._result_log.renews)
        self.next_check = self._checks[0][0] if self._checks else math.inf

    def release_all(self) -> None:
        """Release all records now."""
        checks = [] if self._result_log.closed else list(self._checks)
        for _, _, delay in checks:
            self._release(delay.lease, self._delayed(delay))
        self.clear()

    def clear(self) -> list[Lease]:
        """Forget all records; return their leases."""
        leases = list(self._due)
        self._checks, self._due, self.next_check = [], {}, math.inf
        return leases

    def _plan(self, delay: _Delay, check_at: float) -> None:
        self._check_count += 1
        heapq.heappush(self._checks, (check_at, self._check_count, delay))
        self.next_check = self._checks[0][0]

    def _delayed(self, delay: _Delay) -> list[int]:
        """Return the records that are still delayed by this call; forget the others."""
        lease = delay.lease
        due = self._due.get(lease, {})
        mine = [offset for offset in delay.offsets if due.get(offset) == delay.due]
        delayed = [offset for offset in mine if lease.delayed_state(offset)]
        self._forget(lease, [] if len(delayed) == len(mine) else set(mine) - {*delayed})
        return delayed

    def _check(self, delay: _Delay, now: float, *, renewable: bool) -> None:
        lease = delay.lease
        offsets = self._delayed(delay)
        if now >= delay.due:
            self._release(lease, offsets)
            return
        by_deadline: dict[float, list[int]] = {}
        renewing: list[int] = []
        for offset in offsets:
            if lease.delayed_state(offset) == DELAYED:
                deadline = lease.deadline_of(offset)
                by_deadline.setdefault(deadline, []).append(offset)
            else:
                renewing.append(offset)
        if renewing:
            self._plan_look(replace(delay, offsets=renewing), now)
        for deadline, group in by_deadline.items():
            part = replace(delay, offsets=group)
            if deadline != delay.deadline:
                part = part.with_deadline(deadline, now)
            self._keep_lock(part, now, renewable=renewable)

    def _keep_lock(self, delay: _Delay, now: float, *, renewable: bool) -> None:
        """Renew the lock if it is time, or release the records if it cannot be."""
        if delay.due <= delay.last_chance:
            self._plan(delay, delay.due)
            return
        self._result_log.needs_renewals = True
        if renewable and not delay.is_renewed and now < delay.deadline:
            if now < delay.renew_at:
                self._plan(delay, min(delay.renew_at, delay.due))
                return
            delay.lease.renew_delayed(delay.offsets)
            self._plan_look(replace(delay, is_renewed=True), now)
        elif delay.due <= delay.deadline:
            self._plan(delay, delay.due)
        elif now < delay.last_chance:
            self._plan(delay, delay.last_chance)
        else:
            if not renewable:  # a failed renewal is reported as one
                self._result_log.early_releases += len(delay.offsets)
            self._release(delay.lease, delay.offsets)

    def _plan_look(self, delay: _Delay, now: float) -> None:
        """Plan to look for the result of a renewal."""
        interval = max(MIN_INTERVAL, (delay.deadline - now) / 4)
        self._plan(delay, min(now + interval, delay.due))

    def _release(self, lease: Lease, offsets: Sequence[int]) -> None:
        # A worker does not allow its handlers to release records.
        is_guarded, self._result_log.is_guarded = self._result_log.is_guarded, False
        for offset in offsets:
            lease.acknowledge(offset, RELEASE)
        self._result_log.is_guarded = is_guarded
        self._forget(lease, offsets)

    def _forget(self, lease: Lease, offsets: Collection[int]) -> None:
        due = self._due.get(lease)
        if due is not None and offsets:
            for offset in offsets:
                due.pop(offset, None)
            if not due:
                del self._due[lease]
