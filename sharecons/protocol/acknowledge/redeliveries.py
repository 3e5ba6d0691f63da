"""Pauses for partitions whose records are released again and again.

A broker makes a released record available at once, and each delivery counts. In an
outage of something that a handler needs, a fast consumer uses up all deliveries of a
record within milliseconds, and the broker archives it.

Theory of operation
-------------------
The first release of a record costs no time: another consumer may be able to process it.
If records that came again are released again, and more records of their partition are
released than accepted, the partition is not fetched for a while: the longer, the more
deliveries the records have used up. Nothing is held during such a pause, and fetches
for other partitions go on. Afterwards one record is fetched first (`Pace.restart`).

Other members fetch the records meanwhile. Each of them pauses as well if it releases
them.
"""

import math
from typing import Final, final

from sharecons._record import ACCEPT, REJECT, RELEASE
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.messages import Range, SharePartition

__all__ = ["PAUSES", "Redeliveries"]

PAUSES: Final[tuple[float, ...]] = (0.0, 0.0, 1.0, 3.0, 5.0)
"""Seconds after the release of a record with so many deliveries, or more. With a
delivery limit of 5, an outage of up to 9 s archives nothing."""

LAST_PAUSE: Final = len(PAUSES) - 1

DECAY: Final = 0.5
"""How much of the counts is left after each response with records."""


@final
class History:
    """What became of one partition's records lately.

    Attributes:
        released, accepted: records; fading.
        highest: the highest delivery count of those released since the last look.
        until: the partition is not fetched before.
    """

    __slots__ = ("accepted", "highest", "released", "until")

    def __init__(self) -> None:
        self.released = 0.0
        self.accepted = 0.0
        self.highest = 0
        self.until = -math.inf


@final
class Redeliveries:
    """Those from one leader. Partitions without a released record have no history."""

    def __init__(self) -> None:
        self._histories: dict[SharePartition, History] = {}

    @property
    def has_releases(self) -> bool:
        """True if records of some partition were released lately."""
        return bool(self._histories)

    def keep_only(self, partitions: frozenset[SharePartition]) -> None:
        """Forget partitions that are no longer fetched."""
        if self._histories:
            for each in [each for each in self._histories if each not in partitions]:
                del self._histories[each]

    def on_acquired(self, share_partition: SharePartition) -> None:
        """Records of a partition came."""
        history = self._histories.get(share_partition)
        if history is not None:
            history.released *= DECAY
            history.accepted *= DECAY
            if history.released < DECAY:
                del self._histories[share_partition]

    def on_acknowledged(self, lease: Lease, ranges: tuple[Range, ...]) -> None:
        """The application has acknowledged these records of a lease."""
        history = self._histories.get(lease.share_partition)
        for first, last, kinds in ranges:
            size = last - first + 1
            released = _count(kinds, RELEASE, size)
            accepted = _count(kinds, ACCEPT, size) + _count(kinds, REJECT, size)
            if released and history is None:
                history = self._histories[lease.share_partition] = History()
            if history is not None:
                history.released += released
                history.accepted += accepted
                if released:
                    count = lease.highest_delivery_count
                    history.highest = max(history.highest, count)

    def update_pauses(self, now: float) -> bool:
        """Begin and end pauses; return whether one begins."""
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
        """Return those partitions that are not paused; `wanted` itself if all."""
        paused = [
            each for each, history in self._histories.items() if now < history.until
        ]
        return partitions.difference(paused) if paused else partitions

    def next_pause_end(
        self, partitions: frozenset[SharePartition], now: float
    ) -> float:
        """Return when the next pause of a wanted partition ends; infinity if none."""
        return min(
            (
                history.until
                for each, history in self._histories.items()
                if now < history.until and each in partitions
            ),
            default=math.inf,
        )


def _count(kinds: bytes, kind: int, size: int) -> int:
    if len(kinds) == 1:
        return size if kinds[0] == kind else 0
    return kinds.count(kind)
