"""One attempt of a ShareFetch: check for enough bytes, and acquire records.

A request is tried when it arrives, each time that one of its partitions changes, and
when its wait time is over; the last attempt takes whatever there is (KIP-932, "Fetching
and acknowledging records").
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sharecons.testing.broker.log.partition_log import PartitionLog, StoredBatch
from sharecons.testing.broker.share.acquire import AcquireRequest
from sharecons.testing.broker.share.deliveries import AcquiredRecords, GroupSettings
from sharecons.testing.broker.share.isolation import aborted_ranges
from sharecons.testing.broker.share.partition import SharePartition
from sharecons.testing.broker.share.sessions import TopicPartition

__all__ = ["FetchLimits", "FetchSource", "Fetched", "acquire_from"]

MAX_RESPONSE_BYTES: Final = (
    55 * 1024 * 1024
)  # of one response: the broker's fetch.max.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """The limits of a fetch, and its isolation level."""

    max_bytes: int
    min_bytes: int
    read_committed: bool = False

    @property
    def response_bytes(self) -> int:
        return min(self.max_bytes, MAX_RESPONSE_BYTES)


@dataclass(slots=True)
class FetchSource:
    """A share partition that a fetch can acquire from, and its log."""

    topic_partition: TopicPartition
    partition: SharePartition
    log: PartitionLog


@dataclass(slots=True)
class Fetched:
    """The records that a fetch has acquired from one partition."""

    acquired: list[AcquiredRecords] = field(default_factory=list)
    batches: list[StoredBatch] = field(default_factory=list)

    @property
    def records(self) -> bytes:
        """The batches, without leading and trailing ones that were not acquired."""
        if not self.acquired:
            return b""
        first, last = self.acquired[0].first_offset, self.acquired[-1].last_offset
        return b"".join(
            batch.data
            for batch in self.batches
            if batch.last_offset >= first and batch.base_offset <= last
        )


def acquire_from(
    sources: Sequence[FetchSource],
    limits: FetchLimits,
    request: AcquireRequest,
    settings: GroupSettings,
    now: float,
    *,
    is_last: bool,
) -> dict[TopicPartition, Fetched] | None:
    """Acquire from all partitions; return None if there are not enough bytes.

    Kafka checks by reading those partitions that it has not checked at their offset
    before. These then come after the others, and each of both halves has the request's
    maximum bytes and its own first batch.
    """
    reads = [
        _PartitionRead(source, most) for source, most in _byte_shares(sources, limits)
    ]
    if is_last:
        return _acquire([reads], limits, request, settings, now)
    new = [
        read
        for read in reads
        if read.offset != read.source.partition.last_checked_offset
    ]
    for read in new:
        if read.is_in_range:
            read.source.partition.last_checked_offset = read.offset
    if not _is_enough(reads, limits):
        return None
    known = [read for read in reads if read not in new]
    return _acquire([known, new], limits, request, settings, now)


class _PartitionRead:
    """The read of one partition."""

    def __init__(self, source: FetchSource, max_bytes: int) -> None:
        self.source = source
        self.max_bytes = max_bytes
        self.offset = source.partition.next_fetch_offset()
        self.batches: list[StoredBatch] = []

    @property
    def is_in_range(self) -> bool:
        log = self.source.log
        return log.start_offset <= self.offset <= log.end_offset

    def size(self, limits: FetchLimits) -> int:
        """Return the bytes at and after the offset, up to the partition's share.

        As in Kafka, records that other members have acquired count too.
        """
        log, end = self.source.log, _end(self.source.log, limits)
        batches = log.batches(self.offset, end, self.max_bytes)
        is_all = not batches or batches[-1].last_offset + 1 >= end
        return min(_bytes(batches), self.max_bytes) if is_all else self.max_bytes

    def read(self, limits: FetchLimits, max_bytes: int, *, is_first: bool) -> None:
        if self.source.log.start_offset <= self.offset:
            end = _end(self.source.log, limits)
            self.batches = self.source.log.batches(self.offset, end, max_bytes)
        if not is_first and self.batches and len(self.batches[0].data) > max_bytes:
            self.batches = []

    def acquire(
        self,
        request: AcquireRequest,
        limits: FetchLimits,
        settings: GroupSettings,
        now: float,
    ) -> Fetched:
        partition, log = self.source.partition, self.source.log
        if not self.is_in_range:
            partition.log_start_moved(log.start_offset)
            return Fetched()
        aborted = aborted_ranges(log, self.batches) if limits.read_committed else ()
        acquired = partition.acquire(
            request, self.offset, self.batches, settings, now, aborted
        )
        return Fetched(acquired, self.batches)


def _is_enough(reads: Sequence[_PartitionRead], limits: FetchLimits) -> bool:
    if not reads:
        return False
    if not all(read.is_in_range for read in reads):
        return True  # acquiring finds the new start offset
    size = sum(read.size(limits) for read in reads)
    return size >= min(limits.min_bytes, limits.response_bytes)


def _acquire(
    halves: Sequence[Sequence[_PartitionRead]],
    limits: FetchLimits,
    request: AcquireRequest,
    settings: GroupSettings,
    now: float,
) -> dict[TopicPartition, Fetched]:
    """Read from each partition in order, and acquire."""
    results: dict[TopicPartition, Fetched] = {}
    for half in halves:
        remaining, is_first = limits.response_bytes, True
        for read in half:
            read.read(limits, min(read.max_bytes, remaining), is_first=is_first)
            is_first = is_first and not read.batches
            remaining = max(remaining - _bytes(read.batches), 0)
    for read in (read for half in halves for read in half):
        result = read.acquire(request, limits, settings, now)
        results[read.source.topic_partition] = result
        count = sum(
            part.last_offset - part.first_offset + 1 for part in result.acquired
        )
        request = replace(request, max_records=request.max_records - count)
    return results


def _bytes(batches: Sequence[StoredBatch]) -> int:
    return sum(len(batch.data) for batch in batches)


def _byte_shares(
    sources: Sequence[FetchSource], limits: FetchLimits
) -> list[tuple[FetchSource, int]]:
    """Return each partition's share of the bytes: equal parts, or one byte each."""
    if limits.response_bytes >= len(sources):
        return [(source, limits.response_bytes // len(sources)) for source in sources]
    return [
        (source, int(at < limits.response_bytes)) for at, source in enumerate(sources)
    ]


def _end(log: PartitionLog, limits: FetchLimits) -> int:
    return log.last_stable_offset if limits.read_committed else log.end_offset
