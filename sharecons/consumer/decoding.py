"""Decoding the bytes of a lease to records."""

from collections.abc import Sequence

from sharecons._record import Record
from sharecons.errors import CorruptRecordsError
from sharecons.log import get_logger
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.records.batch import decode

__all__ = ["decode_lease"]

_log = get_logger(__name__)


def decode_lease(lease: Lease) -> tuple[list[Record], list[CorruptRecordsError]]:
    """Decode a lease; return its records and the errors to raise.

    Also sets in the lease which offsets have records. It releases damaged batches,
    because another replica or transfer may be intact, and acquired offsets that the
    response does not contain. It acknowledges offsets without a record as gaps.
    """
    topic, partition = lease.topic, lease.share_partition.partition
    decoded = decode(lease.payload, lease.acquired, topic, partition, lease)
    records = decoded.records
    if len(records) == lease.count and len(lease.acquired) == 1:
        lease.set_dense_offsets()
        return records, []
    damaged = [(bad.first_offset, bad.last_offset) for bad in decoded.undecodable]
    lease.set_offsets(
        _offsets(records), gaps=decoded.gaps, undeliverable=[*damaged, *decoded.unseen]
    )
    if decoded.unseen:
        _log.warning(
            "acquired offsets came without their records, and were released",
            topic=topic,
            partition=partition,
            ranges=decoded.unseen[:3],
        )
    return records, [
        CorruptRecordsError(
            bad.reason,
            topic=topic,
            partition=partition,
            first_offset=bad.first_offset,
            last_offset=bad.last_offset,
        )
        for bad in decoded.undecodable
    ]


def _offsets(records: Sequence[Record]) -> Sequence[int]:
    if not records:
        return ()
    first, last = records[0].offset, records[-1].offset
    if last - first + 1 == len(records):
        return range(first, last + 1)  # the usual case, without a copy
    return [record.offset for record in records]
