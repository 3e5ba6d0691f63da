"""Pauses for partitions whose records are released again and again.

A broker makes a released record available immediately, and each delivery counts. In an
outage of something that a handler needs, a fast consumer uses up all deliveries of a
record within milliseconds, and the broker archives it.

Theory of operation
-------------------
The first release of a record causes no pause: another consumer might be able to process
it. If redelivered records are released again, and more records of their partition are
released than accepted, the partition is not fetched for a while: the longer, the more
deliveries the records have used up. No records are held during the pause, and other
partitions are still fetched. Afterwards one record is fetched first
(`Prefetch.restart`).

Other members fetch the records meanwhile. Each of them pauses as well if it releases
them.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, final

from sharecons._record import ACCEPT, REJECT, RELEASE
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.runs import Run
from sharecons.protocol.partitions import SharePartition

__all__ = ["PAUSES", "Redeliveries"]

PAUSES: Final[tuple[float, ...]] = (0.0, 0.0, 1.0, 3.0, 5.0)
"""Pauses in seconds by the delivery count of the released record; the last one is for
all higher counts. With a delivery limit of 5, an outage of 9 s archives no record."""

LAST_PAUSE: Final = len(PAUSES) - 1

DECAY: Final = 0.5
"""The factor that each response with records applies to the counts."""


@final
class History:
    """Recent acknowledgements of one partition.

    Attributes:
        released, accepted: numbers of records, decaying.
        highest: the highest delivery count released since the last `update_pauses`.
        until: the partition is not fetched before this time.
    """

    __slots__ = ("accepted", "highest", "released", "until")

    def __init__(self) -> None:
        self.released = 0.0
        self.accepted = 0.0
        self.highest = 0
        self.until = -math.inf

    def add_releases(self, lease: Lease, first: int, last: int) -> None:
        """Count released records, except damaged ones, which are rejected next."""
        damaged = lease.result_log.damaged
        for low, high in damaged.others(lease.share_partition, first, last):
            self.released += high - low + 1
            count = _highest_delivery_count(lease, low, high)
            self.highest = max(self.highest, count)


@final
class Redeliveries:
    """The partitions of one leader of which records were released recently."""

    def __init__(self) -> None:
        self._histories: dict[SharePartition, History] = {}

    @property
    def has_releases(self) -> bool:
        """True if records of some partition were released recently."""
        return bool(self._histories)

    def keep_only(self, partitions: frozenset[SharePartition]) -> None:
        """Forget partitions that are no longer fetched."""
        if self._histories:
            for each in [each for each in self._histories if each not in partitions]:
                del self._histories[each]

    def on_acquired(self, share_partition: SharePartition) -> None:
        """Reduce the weight of earlier acknowledgements of the partition."""
        history = self._histories.get(share_partition)
        if history is not None:
            history.released *= DECAY
            history.accepted *= DECAY
            if history.released < DECAY:
                del self._histories[share_partition]

    def on_acknowledged(self, lease: Lease, runs: Iterable[Run]) -> None:
        """Count released and accepted records of a lease."""
        history = self._histories.get(lease.share_partition)
        for first, last, kind in runs:
            size = last - first + 1
            if kind == RELEASE:
                if history is None:
                    history = self._histories[lease.share_partition] = History()
                history.add_releases(lease, first, last)
            elif history is not None and kind in (ACCEPT, REJECT):
                history.accepted += size

    def update_pauses(self, now: float) -> bool:
        """Start and end pauses; return whether one starts."""
        begins = False
        for history in self._histories.values():
            if history.accepted >= history.released:
                history.until = -math.inf
            elif history.highest:
                pause = PAUSES[min(history.highest, LAST_PAUSE)]
                begins |= pause > 0.0
                history.until = max(history.until, now + pause)
            history.highest = 0
        return begins

    def fetchable(
        self, partitions: frozenset[SharePartition], now: float
    ) -> frozenset[SharePartition]:
        """Return the partitions that are not paused; the same object if none is."""
        paused = [
            each for each, history in self._histories.items() if now < history.until
        ]
        return partitions.difference(paused) if paused else partitions

    def next_pause_end(
        self, partitions: frozenset[SharePartition], now: float
    ) -> float:
        """Return when the next pause of these partitions ends; infinity if none."""
        return min(
            (
                history.until
                for each, history in self._histories.items()
                if now < history.until and each in partitions
            ),
            default=math.inf,
        )


def _highest_delivery_count(lease: Lease, first: int, last: int) -> int:
    """Return the highest delivery count of the offsets from `first` to `last`."""
    acquired = lease.acquired
    highest = 0
    index = max(0, bisect_left(acquired, (first + 1, 0, 0)) - 1)
    while index < len(acquired) and acquired[index][0] <= last:
        if acquired[index][1] >= first:
            highest = max(highest, acquired[index][2])
        index += 1
    return highest
