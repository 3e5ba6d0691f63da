"""A buffer that withholds the leases of paused topics until they are resumed.

A withheld lease keeps its locks while they last. Nothing renews them: once they have
ended, the broker delivers the records again, and the lease is dropped when its topic is
resumed.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sharecons.member.group_configs import GroupConfigReader
from sharecons.member.lease_buffer import LeaseBuffer, insert_lease
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.io.event_loop import Clock
from sharecons.protocol.acknowledge.leases import Lease

__all__ = ["PausableBuffer"]


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
        self._withheld: list[Lease] = []
        self._decoded: dict[Lease, list[Any]] = {}

    def set_paused(self, topics: frozenset[str]) -> None:
        """Withhold the leases of these topics; deliver the leases of all others."""
        self.paused = topics
        self._withhold()
        self._return_withheld()

    def on_acquired(self, leases: Sequence[Lease]) -> None:
        super().on_acquired(leases)
        if self.paused and not self.closed:
            self._withhold()  # a fetch was in flight when the topic was paused

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
            if lease is self.lease:
                self._demand.on_processed(self.clock(), expired=self.remaining())
                self._decoded[lease] = self.records
                self._drop_lease()
            else:
                self._ready.remove(lease)
                self._demand.on_dropped(lease.count)
            self._withheld.append(lease)

    def _return_withheld(self) -> None:
        withheld, self._withheld = self._withheld, []
        for lease in withheld:
            if lease.topic in self.paused:
                self._withheld.append(lease)
                continue
            if lease not in self._decoded:
                self._demand.on_returned(lease.count)
            insert_lease(self._ready, lease)

    def _decode(self, lease: Lease) -> None:
        records = self._decoded.pop(lease, None)
        if records is None:
            super()._decode(lease)
        else:
            self.lease, self.records = lease, records

    def _on_dropped(self, lease: Lease) -> None:
        if self._decoded.pop(lease, None) is None:
            super()._on_dropped(lease)
