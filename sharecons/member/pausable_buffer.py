"""A buffer that withholds the leases of paused topics until they are resumed.

Pauses cost a record one delivery at most. Withheld leases are renewed, which uses up
none. After HOLD seconds the leases on their first delivery are released, so that
other members get their records during a long pause. Records that were delivered before
stay locked: more releases would archive them. Where nothing can be renewed, the locks
of all end.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sharecons.member.group_configs import GroupConfigReader
from sharecons.member.lease_buffer import LeaseBuffer, insert_lease
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.io.event_loop import FOREVER, Clock
from sharecons.protocol.acknowledge.leases import Lease

__all__ = ["PausableBuffer"]

HOLD: Final = 60.0
"""Seconds for which first deliveries are withheld. Circuit breakers pause for less."""

TWO_DELIVERIES: Final = 2
"""The delivery limit with which a released record is on its last delivery."""


class PausableBuffer(LeaseBuffer):
    """The buffer of a member whose topics can be paused.

    Attributes:
        paused: the topics whose records are not delivered.
    """

    def __init__(
        self,
        clock: Clock,
        recorder: MetricsRecorder,
        configs: GroupConfigReader,
        value_views: bool = False,
        *,
        log_fields: Mapping[str, str],
    ) -> None:
        super().__init__(clock, recorder, configs, value_views, log_fields=log_fields)
        self.paused: frozenset[str] = frozenset()
        self._releases = True
        self._withheld: dict[Lease, list[Any]] = {}
        self._returned: dict[Lease, list[Any]] = {}
        self._live_until: dict[Lease, float] = {}

    def set_paused(self, topics: frozenset[str], *, releases: bool = True) -> None:
        """Withhold the leases of these topics; deliver the leases of all others.

        Args:
            releases: release first deliveries after HOLD seconds.
        """
        self.paused = topics
        self._releases = releases
        self._withhold()
        self._return_withheld()

    def drop_lost(self) -> None:
        """Drop the withheld leases whose locks have ended."""
        now = self.clock()
        for lease in list(self._withheld):
            if lease.lock_scope.ended or lease.locks.last() <= now:
                self._on_lost(lease, self._withheld.pop(lease))

    def on_acquired(self, leases: Sequence[Lease]) -> None:
        super().on_acquired(leases)
        if self.paused and not self.closed:
            self._withhold()  # a fetch was in flight when the topic was paused

    def on_locks_lost(self, leases: Sequence[Lease]) -> bool:
        self.drop_lost()
        return super().on_locks_lost(leases)

    def keep_only(self, topics: Collection[str]) -> None:
        """Deliver records of these topics only, as `LeaseBuffer.keep_only`."""
        if self.paused:
            self.set_paused(self.paused.intersection(topics))
        super().keep_only(topics)

    def close(self) -> None:
        """Deliver no more, as `LeaseBuffer.close`."""
        self.set_paused(frozenset())
        super().close()

    def _withhold(self) -> None:
        for lease in self._unprocessed():
            if lease.topic not in self.paused:
                continue
            is_live = self._is_live(lease)
            if lease is self.lease:
                self._demand.on_processed(self.clock(), expired=self.remaining())
                records = self.records
                self._drop_lease()
            else:
                self._ready.remove(lease)
                if not is_live:
                    self._on_expired(lease)
                    continue
                records = self._take_records(lease)
            if is_live:
                self._withheld[lease] = records
                if not self._is_lost_without_renewal(lease):
                    lease.hold(lease.cursor, len(records), self._hold_time(lease))
            else:
                self._on_lost(lease, records)

    def _take_records(self, lease: Lease) -> list[Any]:
        """Return the records of a lease that leaves the queue without a delivery."""
        self._live_until.pop(lease, None)
        records = self._returned.pop(lease, None)
        if records is None:
            self._demand.on_dropped(lease.count)
            return self._decode_records(lease)
        self._demand.on_dropped(len(records) - lease.cursor)
        return records

    def _is_lost_without_renewal(self, lease: Lease) -> bool:
        """Return whether a release after HOLD seconds would archive a record."""
        is_last = lease.highest_delivery_count >= self.configs.delivery_limit
        return is_last and self.configs.renews is False

    def _hold_time(self, lease: Lease) -> float:
        is_first = lease.highest_delivery_count == 1
        can_release = is_first and self.configs.delivery_limit != TWO_DELIVERIES
        return HOLD if can_release and self._releases else FOREVER

    def _return_withheld(self) -> None:
        for lease, records in list(self._withheld.items()):
            if lease.topic in self.paused:
                continue
            del self._withheld[lease]
            rest = records[lease.cursor :]
            if rest and lease.reopen(lease.cursor, len(records)):
                until = min([lease.deadline_of(each.offset) for each in rest])
                self._live_until[lease] = until
                self._returned[lease] = records
                self._demand.on_returned(len(rest))
                insert_lease(self._ready, lease)
                continue
            if not lease.lock_scope.ended and self.clock() < lease.locks.last():
                lease.release_remaining()  # a part of it
            self._on_lost(lease, records)

    def _deadline(self, lease: Lease) -> float:
        return self._live_until.get(lease, lease.locks.deadline)

    def _decode(self, lease: Lease) -> None:
        if lease not in self._returned or not self._is_live(lease):
            super()._decode(lease)
            return
        self.lease, self.records = lease, self._returned.pop(lease)
        self._demand.on_delivered(self.remaining(), self.clock())

    def _on_dropped(self, lease: Lease) -> list[Any] | None:
        self._live_until.pop(lease, None)
        if lease not in self._returned:
            return super()._on_dropped(lease)
        records = self._returned.pop(lease)
        self._demand.on_dropped(len(records) - lease.cursor)
        return records

    def _drop_lease(self) -> None:
        if self.lease is not None:
            self._live_until.pop(self.lease, None)
        super()._drop_lease()
