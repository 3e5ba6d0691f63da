"""A delivery queue that withholds the leases of paused topics until they are resumed.

A withheld lease keeps its locks while they last. Nothing renews them: once they have
ended, the broker delivers the records again, and the lease is dropped when its topic is
resumed.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from sharecons.consumer.delivery_queue import Acknowledged, DeliveryQueue
from sharecons.consumer.deserializers import Deserializers
from sharecons.consumer.readers import insert_lease
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.group_configs import GroupConfigReader
from sharecons.net.io.event_loop import Clock, Waiter
from sharecons.protocol.acknowledge.leases import Lease

__all__ = ["PausableQueue"]


class PausableQueue(DeliveryQueue):
    """The queue of a consumer whose topics can be paused.

    Attributes:
        paused: the topics whose records are not delivered.
    """

    # Spelled out, as mypyc does not pass `**arguments` to keyword-only parameters.
    def __init__(
        self,
        *,
        implicit: bool,
        clock: Clock,
        new_waiter: Callable[[], Waiter],
        recorder: MetricsRecorder,
        deserializers: Deserializers,
        configs: GroupConfigReader,
        on_acknowledged: Acknowledged | None,
        check_caller: Callable[[], None],
    ) -> None:
        super().__init__(
            implicit=implicit,
            clock=clock,
            new_waiter=new_waiter,
            recorder=recorder,
            deserializers=deserializers,
            configs=configs,
            on_acknowledged=on_acknowledged,
            check_caller=check_caller,
        )
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
        """Deliver records of these topics only; release queued records of others."""
        if self.paused:
            self.set_paused(self.paused.intersection(topics))
        super().keep_only(topics)

    def close(self) -> None:
        """Deliver no more records, as `DeliveryQueue.close`."""
        self.set_paused(frozenset())
        super().close()

    def _withhold(self) -> None:
        for lease in self._unprocessed():
            if lease.topic not in self.paused:
                continue
            if lease is self.lease:
                self._count_processed(None)
                self._decoded[lease] = self.records
                self._drop_lease()
                self._readers.interrupt()
            else:
                self._ready.remove(lease)
                self._prefetch.on_dropped(lease.count)
            self._withheld.append(lease)

    def _return_withheld(self) -> None:
        withheld, self._withheld = self._withheld, []
        for lease in withheld:
            if lease.topic in self.paused:
                self._withheld.append(lease)
                continue
            if lease not in self._decoded:
                self._prefetch.on_acquired(lease.count)
            insert_lease(self._ready, lease)
        self.wake_next()

    def _decode(self, lease: Lease) -> None:
        records = self._decoded.pop(lease, None)
        if records is None:
            super()._decode(lease)
        else:
            self.lease, self.records = lease, records

    def _on_dropped(self, lease: Lease) -> None:
        if self._decoded.pop(lease, None) is None:
            super()._on_dropped(lease)
