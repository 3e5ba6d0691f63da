"""The queue of leases that are ready to be delivered."""

from collections import deque
from collections.abc import Sequence

from sharecons._record import Record
from sharecons.protocol.acknowledge.leases import Lease

__all__ = ["count_last_deliveries", "insert"]


def insert(ready: deque[Lease], lease: Lease) -> None:
    """Insert a lease behind those with as many deliveries.

    Records on their last delivery are delivered first: releasing them unprocessed
    archives them. Most leases are on their first delivery, so the scan is short.
    """
    place = len(ready)
    while (
        place and ready[place - 1].highest_delivery_count < lease.highest_delivery_count
    ):
        place -= 1
    ready.insert(place, lease)


def count_last_deliveries(
    lease: Lease, records: Sequence[Record] | None, limit: int
) -> int:
    """Count the offsets on their last delivery.

    Args:
        records: those not delivered; None before the lease is decoded.
        limit: the delivery limit of the group.
    """
    if records is not None:
        return sum(record.delivery_count >= limit for record in records)
    return sum(
        last - first + 1 for first, last, count in lease.acquired if count >= limit
    )
