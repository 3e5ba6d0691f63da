"""The records that a release archives: those on their last delivery."""

from collections.abc import Iterable

from sharecons._record import RELEASE
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.ranges import Run
from sharecons.protocol.acknowledge.result_log import ArchivedRange

__all__ = ["archived_by"]


def archived_by(
    lease: Lease, runs: Iterable[Run], delivery_limit: int
) -> list[ArchivedRange]:
    """Return the records among these runs of a lease that were archived by a release.

    Args:
        delivery_limit: the group's limit; 0 if it is not known.
    """
    if not 0 < delivery_limit <= lease.highest_delivery_count:
        return []
    spent = [(a, b) for a, b, count in lease.acquired if count >= delivery_limit]
    partition = lease.share_partition.partition
    archived: list[ArchivedRange] = []
    for first, last, kind in runs:
        if kind == RELEASE:
            for begin, end in spent:
                low, high = max(first, begin), min(last, end)
                if low <= high:
                    archived.append(ArchivedRange(lease.topic, partition, low, high))
    return archived
