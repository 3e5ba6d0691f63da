"""Keeps the locks of held records: renews them, and reports lost ones."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from anyio.lowlevel import checkpoint

from sharecons.errors import (
    ClosedError,
    LockLostError,
    RecordStateError,
    UnsupportedVersionError,
)
from sharecons.log import get_logger
from sharecons.net.io.event_loop import AutoResetEvent, Clock
from sharecons.protocol.acknowledge.renewals import HeldRecord, RenewalSchedule

__all__ = ["LockKeeper"]

AT_A_TIME: Final = 100
"""Records whose loss is handled in one step before other tasks run."""

LOCK_ENDED: Final = "the lock has ended"


class HeldItem(HeldRecord, Protocol):
    """A record that is held, with its lock."""

    @property
    def record(self) -> Any: ...

    @property
    def is_done(self) -> bool:
        """True if it is held no longer."""
        ...


H = TypeVar("H", bound=HeldItem)
H_co = TypeVar("H_co", bound=HeldItem, covariant=True)


class HeldItems(Protocol[H_co]):
    """The records that are held: a `Scheduler`, for example."""

    @property
    def held(self) -> tuple[H_co, ...]:
        """All of them."""
        ...


class LockKeeper(Generic[H]):
    """Renews locks in a task.

    Args:
        items: the records that are held.
        lose: is called with records whose locks are lost, and the reason.
        end_lease: is called with each record that is held for too long.
    """

    def __init__(
        self,
        items: HeldItems[H],
        renewals: RenewalSchedule[H],
        clock: Clock,
        lose: Callable[[Sequence[H], str], None],
        end_lease: Callable[[H], None],
        *,
        group_id: str,
    ) -> None:
        self._items = items
        self._renewals = renewals
        self._clock = clock
        self._lose = lose
        self._end_lease = end_lease
        self._wakeup = AutoResetEvent()
        self._wait_ends = 0.0
        self._lost_reason = ""
        self._log = get_logger(__name__, group=group_id)

    def add(self, item: H) -> None:
        """Keep the lock of a record that has just been delivered."""
        now = self._clock()
        deadline = item.record.lock_deadline
        if deadline <= now:  # lost between the delivery and this call
            self.on_locks_lost(LOCK_ENDED)
            return
        check_at = self._renewals.add(item, deadline=deadline, duration=deadline - now)
        if check_at < self._wait_ends:
            self._wait_ends = check_at
            self._wakeup.set()

    def on_locks_lost(self, reason: str) -> bool:
        """Look for records whose locks are lost: a session or a renewal has failed.

        Return whether there are such records; `lose` is called with them soon.
        """
        self._lost_reason = reason
        self._wakeup.set()
        return any(not item.record.held for item in self._items.held)

    async def run(self) -> None:
        """Renew locks until cancelled."""
        while True:
            self._wait_ends = self._renewals.next_check()
            await self._wakeup.wait_until(self._wait_ends)
            now = self._clock()
            due = self._renewals.take_due(now, _deadline_of)
            lost = due.lost + [item for item in due.renew if not self._renew(item)]
            reason, self._lost_reason = self._lost_reason, ""
            if reason:
                # A lock that has just ended is in both lists.
                lost = list(dict.fromkeys(lost + self._without_lock()))
            for start in range(0, len(lost), AT_A_TIME):
                self._lose(lost[start : start + AT_A_TIME], reason or LOCK_ENDED)
                await checkpoint()
            for item in due.held_too_long:
                self._end_lease(item)

    def next_renewal(self) -> float:
        """Return when a lock must be renewed next; infinity if none is kept."""
        return self._renewals.next_check()

    @property
    def renews(self) -> bool:
        """False after `stop_renewing`."""
        return self._renewals.renews

    def stop_renewing(self, reason: str) -> None:
        """Renew no more locks, because the broker or the group does not allow it."""
        if self._renewals.stop_renewing():
            self._log.warning(
                "locks are not renewed: records must be processed within their lock "
                "duration",
                reason=reason,
            )

    def resume_renewing(self) -> None:
        """Renew locks again, because the group allows it again."""
        if self._renewals.resume_renewing():
            self._log.info("locks are renewed again")
            self._wakeup.set()

    def _without_lock(self) -> list[H]:
        return [item for item in self._items.held if not item.record.held]

    def _renew(self, item: H) -> bool:
        """Renew a lock; return False if it is lost."""
        if not item.is_done:
            try:
                item.record.renew()
            except UnsupportedVersionError as error:
                self.stop_renewing(str(error))
            except (LockLostError, RecordStateError, ClosedError):
                return False
        return True


def _deadline_of(item: HeldItem) -> float:
    deadline: float = item.record.lock_deadline
    return deadline
