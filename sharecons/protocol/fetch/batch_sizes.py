"""How large the producer batches are that a broker returns."""

from collections.abc import Sequence
from typing import Final, final

from sharecons.protocol.share_messages import PartitionResponse
from sharecons.records.batch_header import HEADER_SIZE, MAGIC, PREFIX_SIZE, Header
from sharecons.records.message_sets import LAST_MAGIC, message_count

__all__ = ["BatchSizes"]

MAX_MEASURED: Final = 64
"""The maximum number of batches measured per partition. With more of them, few batches
are acquired only in part."""

BATCH_WEIGHT: Final = 0.5
"""The weight of the last response."""


@final
class BatchSizes:
    """How large the producer batches are that a broker returns.

    A broker returns every batch whole that holds an acquired record. So the size of the
    batches decides how many bytes a fetch of few records brings. The figures are
    averages over the last responses, weighted by bytes.

    The weighting favours large batches, as they are the cost of a fetch of few records.

    Attributes:
        records: records in a batch, 0.0 if unknown.
        size: bytes of a batch, 0.0 if unknown.
        record_size: bytes of a record, 0.0 if unknown.
        largest: bytes of the largest batch in the last response.
    """

    def __init__(self) -> None:
        self.records = 0.0
        self.size = 0.0
        self.record_size = 0.0
        self.largest = 0
        self._count = 0
        self._bytes = 0
        self._weighted_count = 0.0
        self._weighted_bytes = 0.0
        self._largest = 0

    def measure(self, partitions: Sequence[PartitionResponse]) -> None:
        """Add a response to the averages; one without batches changes nothing."""
        self._count = self._bytes = self._largest = 0
        self._weighted_count = self._weighted_bytes = 0.0
        for partition in partitions:
            self._add(partition.records)
        if not self._bytes:
            return
        weight = BATCH_WEIGHT if self.size else 1.0
        records = self._weighted_count / self._bytes
        size = self._weighted_bytes / self._bytes
        self.records += (records - self.records) * weight
        self.size += (size - self.size) * weight
        self.record_size = self._bytes / self._count
        self.largest = self._largest

    def _add(self, payload: bytes | memoryview) -> None:
        """Measure one partition's records in the response."""
        at, end = 0, len(payload)
        previous = -1  # the offset of the previous message of format 0 or 1
        for _ in range(MAX_MEASURED):
            if end - at < PREFIX_SIZE:
                return
            header = Header(payload, at)
            size = header.end - at
            count = header.count
            if header.magic <= LAST_MAGIC:
                count = message_count(header, previous)
                previous = header.base_offset
            elif header.magic != MAGIC or size < HEADER_SIZE:
                return
            if size < PREFIX_SIZE or count < 0:
                return
            at = header.end
            if not count:
                continue
            self._count += count
            self._bytes += size
            self._weighted_count += float(count) * size
            self._weighted_bytes += float(size) * size
            self._largest = max(self._largest, size)
