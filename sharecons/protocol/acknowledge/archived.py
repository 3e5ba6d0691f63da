"""The ends of deliveries that archive records."""

from collections.abc import Iterable

from sharecons._record import RELEASE
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import LastRelease
from sharecons.protocol.acknowledge.runs import Run

__all__ = ["archived_by", "archived_by_loss"]


def archived_by(
    lease: Lease, runs: Iterable[Run], delivery_limit: int
) -> list[LastRelease]:
    """Return the releases among these runs that archived records.

    Releasing a record on its last delivery archives it.

    Args:
        delivery_limit: the group's limit; 0 if it is not known.
    """
    if not 0 < delivery_limit <= lease.highest_delivery_count:
        return []
    partition = lease.share_partition.partition
    # Given back after their deadline, they have been reported as lost.
    is_reported = lease.locks.last() <= lease.locks.given_back_at
    spent = [each for each in lease.acquired if each[2] >= delivery_limit]
    return [
        LastRelease(lease.topic, partition, max(first, begin), min(last, end), count)
        for first, last, kind in runs
        for begin, end, count in spent
        if kind == RELEASE and max(first, begin) <= min(last, end)
        if first < lease.given_back_from or not is_reported
    ]


def archived_by_loss(lease: Lease, delivery_limit: int) -> list[LastRelease]:
    """Return the unsettled records of a lease without locks that are archived."""
    if not 0 < delivery_limit <= lease.highest_delivery_count:
        return []
    lost = [Run(first, last, RELEASE) for first, last, _ in lease.unsettled_runs()]
    found = archived_by(lease, lost, delivery_limit)
    return [each._replace(is_lost=True) for each in found]
