"""Reports of records that a consumer releases unprocessed, because it closes."""

from collections.abc import Sequence
from typing import Any, Final

from sharecons._record import Record
from sharecons.member.group_configs import GroupConfigReader
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.protocol.acknowledge.leases import Lease

__all__ = ["Unprocessed", "report_unprocessed"]

MIN_DELIVERY_LIMIT: Final = 2
"""Kafka allows no lower delivery limit (group.share.min.delivery.count.limit)."""

Unprocessed = tuple[Lease, Sequence[Record] | None]
"""A lease, and its records that were not delivered; None before it is decoded."""


def report_unprocessed(
    unprocessed: Sequence[Unprocessed],
    recorder: MetricsRecorder,
    configs: GroupConfigReader,
    log: Any,
) -> None:
    """Count these records, and log how many were on their last delivery.

    The delivery limit is read again first, as it can have changed.
    """
    count = sum(
        lease.count if records is None else len(records)
        for lease, records in unprocessed
    )
    recorder.released_unprocessed += count

    def count_last(limit: int) -> int:
        return sum(
            count_last_deliveries(lease, records, limit)
            for lease, records in unprocessed
        )

    def claim() -> None:
        limit = configs.delivery_limit
        if limit and (last := count_last(limit)):
            recorder.last_deliveries_unprocessed += last
            log.warning(
                "records released unprocessed, possibly on their last delivery",
                records=last,
                delivery_limit=limit,
            )

    if count_last(MIN_DELIVERY_LIMIT):
        configs.claim(claim)


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
