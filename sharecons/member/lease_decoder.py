"""Decoding a lease to records."""

from collections.abc import Sequence
from typing import Any

from sharecons._record import REJECT, RELEASE, Record
from sharecons.errors import CorruptRecordsError
from sharecons.protocol.acknowledge.damaged_records import DamagedRange
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.runs import Run
from sharecons.records.batch import Undecodable, decode
from sharecons.records.errors import is_damage

__all__ = ["decode_lease", "read_undelivered"]


def decode_lease(
    lease: Lease, value_views: bool, log: Any
) -> tuple[list[Record], int, list[CorruptRecordsError]]:
    """Decode a lease; return its records, their size in bytes, and errors to raise.

    Also sets in the lease which offsets have records. It releases acquired offsets
    that the response does not contain, and damaged records, because another replica
    or transfer might be intact; it rejects them if they are damaged again. It
    acknowledges offsets without a record as gaps.

    With `value_views`, values are memoryviews of the response.
    """
    topic, partition = lease.topic, lease.share_partition.partition
    decoded = decode(
        lease.payload, lease.acquired, topic, partition, lease, value_views
    )
    records = decoded.records
    if len(records) == lease.count and len(lease.acquired) == 1:
        lease.set_dense_offsets()
        return records, decoded.size, []
    unseen = [Run(first, last, RELEASE) for first, last in decoded.unseen]
    errors = _errors_of(lease, decoded.undecodable)
    damaged = [_run_of(error) for error in errors]
    lease.set_offsets(
        _offsets(records), gaps=decoded.gaps, undeliverable=[*damaged, *unseen]
    )
    if decoded.unseen:
        log.warning(
            "acquired offsets came without their records, and were released",
            topic=topic,
            partition=partition,
            ranges=decoded.unseen[:3],
        )
    return records, decoded.size, errors


def read_undelivered(lease: Lease) -> list[Record]:
    """Return the records of a lease whose locks are lost; nothing is acknowledged."""
    topic, partition = lease.topic, lease.share_partition.partition
    return decode(lease.payload, lease.acquired, topic, partition, lease, False).records


def _errors_of(
    lease: Lease, undecodable: Sequence[Undecodable]
) -> list[CorruptRecordsError]:
    return [
        CorruptRecordsError(
            each.reason,
            topic=lease.topic,
            partition=lease.share_partition.partition,
            first_offset=damaged.first_offset,
            last_offset=damaged.last_offset,
            rejected=damaged.rejected,
        )
        for each in undecodable
        for damaged in _treat(lease, each)
    ]


def _treat(lease: Lease, undecodable: Undecodable) -> Sequence[DamagedRange]:
    first, last, reason = undecodable
    if not is_damage(reason):
        return [DamagedRange(first, last, rejected=False)]
    return lease.result_log.damaged.treat(lease.share_partition, first, last)


def _run_of(error: CorruptRecordsError) -> Run:
    kind = REJECT if error.rejected else RELEASE
    return Run(error.first_offset, error.last_offset, kind)


def _offsets(records: Sequence[Record]) -> Sequence[int]:
    if not records:
        return ()
    first, last = records[0].offset, records[-1].offset
    if last - first + 1 == len(records):
        return range(first, last + 1)  # the usual case, without a copy
    return [record.offset for record in records]
