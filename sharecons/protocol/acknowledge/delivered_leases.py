"""Finds the lease of a delivered record by topic, partition and offset."""

from collections.abc import Callable, Collection
from typing import Final, final

from sharecons.protocol.acknowledge.leases import Lease

__all__ = ["DeliveredLeases"]

KEPT: Final = 4
"""How many settled leases of a partition are kept, for the errors of late calls."""

MIN_LIMIT: Final = 16
"""A partition is not cleaned up before it has more leases than this."""


@final
class PartitionLeases:
    """The leases of one partition, oldest first.

    Attributes:
        limit: the number of leases at which settled ones are removed. It is twice the
            number that was left the last time, so removing costs little per lease.
    """

    __slots__ = ("leases", "limit")

    def __init__(self) -> None:
        self.leases: list[Lease] = []
        self.limit = MIN_LIMIT


@final
class DeliveredLeases:
    """The leases whose records a consumer delivers, and some settled ones.

    Leases with lost locks are kept until these would have ended, unsettled ones longer.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._partitions: dict[tuple[str, int], PartitionLeases] = {}

    def add(self, lease: Lease) -> None:
        """Add a lease whose records are delivered next."""
        key = (lease.topic, lease.share_partition.partition)
        found = self._partitions.get(key)
        if found is None:
            found = self._partitions[key] = PartitionLeases()
        found.leases.append(lease)
        if len(found.leases) > found.limit:
            self._remove_settled(found)

    def find(self, topic: str, partition: int, offset: int) -> Lease | None:
        """Return the latest lease that delivered this record, or None."""
        found = self._partitions.get((topic, partition))
        if found is not None:
            for lease in reversed(found.leases):
                if lease.is_delivered(offset):
                    return lease
        return None

    def keep_only(self, topics: Collection[str]) -> None:
        """Forget other topics, except those whose leases are still needed."""
        now = self._clock()
        self._partitions = {
            key: found
            for key, found in self._partitions.items()
            if key[0] in topics or any(_is_needed(each, now) for each in found.leases)
        }

    def _remove_settled(self, found: PartitionLeases) -> None:
        now = self._clock()
        leases = found.leases
        kept = [each for each in leases[:-KEPT] if _is_needed(each, now)]
        found.leases = kept + leases[-KEPT:]
        found.limit = max(MIN_LIMIT, 2 * len(found.leases))


def _is_needed(lease: Lease, now: float) -> bool:
    if not lease.is_settled:
        return now < lease.locks.last() + lease.locks.duration
    return lease.lock_scope.ended and lease.locks.last() > now
