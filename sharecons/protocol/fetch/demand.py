"""How many records the user of a member wants now.

Users state their demand in words of their own: records ahead, at the measured pace; up
to a number once they request them; rounds of a number; none. From it, the pace and the
lock duration `Prefetch` computes when a fetch is due and how much it requests.
"""

from collections.abc import Callable
from typing import final

from sharecons.protocol.fetch.handler_pace import HandlerPace
from sharecons.protocol.fetch.prefetch import Prefetch

__all__ = ["FetchDemand"]


@final
class FetchDemand:
    """The demand of one member's user. At first records are fetched ahead.

    Records are requested by a task that waits for them (`begin_wait`).

    Args:
        prefetch: computes the limits; no one else changes them.
        max_records: the limit of `ahead` and `for_handlers`.
        wake: is called when a fetch can be due.

    Attributes:
        pace: how long handlers take; only `for_handlers` uses it.
    """

    def __init__(
        self, prefetch: Prefetch, max_records: int, wake: Callable[[], None]
    ) -> None:
        self.pace = HandlerPace()
        self._prefetch = prefetch
        self._max_records = max_records
        self._wake = wake

    # Statements.

    def ahead(self) -> None:
        """Fetch records before they are requested, at the measured pace."""
        self._prefetch.set_max_records(self._max_records)
        self._set_suspended(False)

    def up_to(self, count: int) -> None:
        """Fetch up to `count` records once they are requested; nothing if it is 0."""
        if count:
            self._prefetch.set_allowance(count)
        self._set_suspended(not count)

    def rounds(self, count: int, *, exact: bool = False, window: int = 0) -> None:
        """Fetch `count` records whenever none are buffered, without a request.

        For a user that takes all that has arrived, and prefers few large fetches. Only
        `nothing` and `rounds` can follow.

        Args:
            count: the records of one round, divided among the partition leaders.
            exact: brokers acquire no more than that (since Kafka 4.2), instead of whole
                batches.
            window: records that a partition has in flight at most, by the group's
                config; 0 for Kafka's default.
        """
        self._prefetch.set_rounds(count, exact=exact, window=window)
        self._set_suspended(False)

    def nothing(self) -> None:
        """Fetch nothing until another demand is stated."""
        self._set_suspended(True)

    def for_handlers(self, capacity: int, now: float) -> bool:
        """Fetch for handlers; return whether records are fetched ahead.

        A record that is fetched ahead is locked while it waits. So records are fetched
        ahead only while handlers are fast, by `pace` and the lock duration. Otherwise
        only the records are fetched that can start now.

        Args:
            capacity: how many more records handlers could start with now.
        """
        self.pace.on_capacity(capacity, now)
        is_ahead = self.pace.fetches_ahead(self.lock_duration, now)
        if is_ahead:
            self.ahead()
        else:
            self.up_to(min(capacity, self._max_records))
        return is_ahead

    def set_next_ack(self, next_ack: Callable[[], float]) -> None:
        """Let fetches wait at the broker until something must be sent.

        Args:
            next_ack: returns the earliest time at which the user acknowledges or renews
                a record that it holds.
        """
        self._prefetch.next_ack = next_ack

    def _set_suspended(self, suspended: bool) -> None:
        was_suspended, self._prefetch.suspended = self._prefetch.suspended, suspended
        if was_suspended and not suspended:
            self._wake()

    # Facts.

    @property
    def buffered(self) -> int:
        """How many acquired records have not been delivered."""
        return self._prefetch.buffered

    @property
    def lock_duration(self) -> float:
        """For how many seconds records are locked; 0.0 if not known yet."""
        return self._prefetch.lock_duration

    # Called by the buffer of leases.

    def begin_wait(
        self, now: float, *, expired: int = 0, processing: int = 0, busy: int = 0
    ) -> None:
        """Fetch for a task that waits for records; arguments as `on_processed`."""
        self.on_processed(now, expired=expired, processing=processing, busy=busy)
        self._prefetch.waiting_readers += 1
        self._wake()

    def end_wait(self) -> None:
        """Withdraw the demand of one waiting reader."""
        self._prefetch.waiting_readers -= 1

    def on_processed(
        self, now: float, *, expired: int = 0, processing: int = 0, busy: int = 0
    ) -> None:
        """Measure the pace, as a task requests more records.

        Args:
            expired: records whose locks ended before their turn.
            processing: records that other tasks are processing.
            busy: how many tasks these are.
        """
        self._prefetch.on_requested(
            now, expired=expired, processing=processing, busy=busy
        )

    def on_delivered(self, count: int, now: float) -> None:
        """Count records that leave the buffer for the user."""
        self._prefetch.on_delivered(count, now)
        self._wake()

    def on_returned(self, count: int) -> None:
        """Count records that are in the buffer again, after `on_dropped`."""
        self._prefetch.on_acquired(count)

    def on_dropped(self, count: int) -> None:
        """Count records that leave the buffer without being delivered."""
        self._prefetch.on_dropped(count)
