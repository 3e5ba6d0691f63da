"""From a lease's bytes to its records."""

from collections.abc import Sequence

from sharecons._record import Record
from sharecons.errors import CorruptRecordsError
from sharecons.log import get_logger
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.records.batch import decode

__all__ = ["decode_lease"]

_log = get_logger(__name__)


def decode_lease(lease: Lease) -> tuple[list[Record], list[CorruptRecordsError]]:
    """Decode a lease's records, and tell it; gives them, and what is to be raised.

    Damaged batches are released: damage may lie in one replica, or one transfer. So
    is what the answer does not show; gaps are told to the broker.
    """
    topic, partition = lease.topic, lease.share_partition.partition
    decoded = decode(lease.payload, lease.acquired, topic, partition, lease)
    records = decoded.records
    if len(records) == lease.count and len(lease.acquired) == 1:
        lease.unpacked_whole()
        return records, []
    damaged = [(bad.first_offset, bad.last_offset) for bad in decoded.undecodable]
    lease.unpacked(
        _offsets(records), gaps=decoded.gaps, unfit=[*damaged, *decoded.unseen]
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
        return range(first, last + 1)  # as most are; it costs nothing
    return [record.offset for record in records]
