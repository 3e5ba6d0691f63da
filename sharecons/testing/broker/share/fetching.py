"""One look at the partitions of a ShareFetch: is there enough, and what is acquired.

A request is looked at when it comes, each time that something has changed in one of its
partitions, and when its time is up; then it takes what there is (KIP-932, "Fetching and
acknowledging records").
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sharecons.testing.broker.log.partition_log import PartitionLog, StoredBatch
from sharecons.testing.broker.share.acquire import Wanted
from sharecons.testing.broker.share.deliveries import AcquiredRecords, GroupSettings
from sharecons.testing.broker.share.isolation import aborted_ranges
from sharecons.testing.broker.share.partition import SharePartition
from sharecons.testing.broker.share.sessions import TopicPartition

__all__ = ["FetchLimits", "Fetched", "Source", "looked"]

MOST_BYTES: Final = 55 * 1024 * 1024  # of one answer: the broker's fetch.max.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """How much a fetch may and wants to get, and of what kind."""

    max_bytes: int
    min_bytes: int
    read_committed: bool = False

    @property
    def most(self) -> int:
        return min(self.max_bytes, MOST_BYTES)


@dataclass(slots=True)
class Source:
    """A share partition that a fetch may take from, and its log."""

    where: TopicPartition
    partition: SharePartition
    log: PartitionLog


@dataclass(slots=True)
class Fetched:
    """What a fetch has got of one partition."""

    acquired: list[AcquiredRecords] = field(default_factory=list)
    batches: list[StoredBatch] = field(default_factory=list)

    @property
    def records(self) -> bytes:
        """Whole batches, without those from which nothing was acquired at the ends."""
        if not self.acquired:
            return b""
        first, last = self.acquired[0].first_offset, self.acquired[-1].last_offset
        return b"".join(
            batch.data
            for batch in self.batches
            if batch.last_offset >= first and batch.base_offset <= last
        )


def looked(
    sources: Sequence[Source],
    limits: FetchLimits,
    wanted: Wanted,
    settings: GroupSettings,
    now: float,
    *,
    is_last: bool,
) -> dict[TopicPartition, Fetched] | None:
    """Acquire from all partitions, or from none if that would not be enough.

    Of what it looks at, Kafka reads first where it has not read before, to know how
    much there is. Those partitions are behind the others then, and both halves have
    the request's bytes and a first batch of their own.
    """
    reads = [_Read(source, most) for source, most in _shares(sources, limits)]
    if is_last:
        return _acquired([reads], limits, wanted, settings, now)
    new = [read for read in reads if read.offset != read.source.partition.looked_up]
    for read in new:
        if read.is_in_range:
            read.source.partition.looked_up = read.offset
    if not _is_enough(reads, limits):
        return None
    known = [read for read in reads if read not in new]
    return _acquired([known, new], limits, wanted, settings, now)


class _Read:
    """What is to be read of one partition, and what was."""

    def __init__(self, source: Source, most: int) -> None:
        self.source = source
        self.most = most
        self.offset = source.partition.next_fetch_offset()
        self.batches: list[StoredBatch] = []

    @property
    def is_in_range(self) -> bool:
        log = self.source.log
        return log.start_offset <= self.offset <= log.end_offset

    def size(self, limits: FetchLimits) -> int:
        """Count the bytes that lie behind the offset, up to the partition's share.

        As Kafka does it, also those that others hold.
        """
        log, end = self.source.log, _end(self.source.log, limits)
        batches = log.batches(self.offset, end, self.most)
        is_all = not batches or batches[-1].last_offset + 1 >= end
        return min(_bytes(batches), self.most) if is_all else self.most

    def read(self, limits: FetchLimits, most: int, *, is_first: bool) -> None:
        if self.source.log.start_offset <= self.offset:
            end = _end(self.source.log, limits)
            self.batches = self.source.log.batches(self.offset, end, most)
        if not is_first and self.batches and len(self.batches[0].data) > most:
            self.batches = []

    def acquire(
        self, wanted: Wanted, limits: FetchLimits, settings: GroupSettings, now: float
    ) -> Fetched:
        partition, log = self.source.partition, self.source.log
        if not self.is_in_range:
            partition.log_start_moved(log.start_offset)
            return Fetched()
        aborted = aborted_ranges(log, self.batches) if limits.read_committed else ()
        acquired = partition.acquire(
            wanted, self.offset, self.batches, settings, now, aborted
        )
        return Fetched(acquired, self.batches)


def _is_enough(reads: Sequence[_Read], limits: FetchLimits) -> bool:
    if not reads:
        return False
    if not all(read.is_in_range for read in reads):
        return True  # which is found out by acquiring from it
    size = sum(read.size(limits) for read in reads)
    return size >= min(limits.min_bytes, limits.most)


def _acquired(
    halves: Sequence[Sequence[_Read]],
    limits: FetchLimits,
    wanted: Wanted,
    settings: GroupSettings,
    now: float,
) -> dict[TopicPartition, Fetched]:
    """Read from each partition in turn, and acquire what may be acquired."""
    results: dict[TopicPartition, Fetched] = {}
    for half in halves:
        left, is_first = limits.most, True
        for read in half:
            read.read(limits, min(read.most, left), is_first=is_first)
            is_first = is_first and not read.batches
            left = max(left - _bytes(read.batches), 0)
    for read in (read for half in halves for read in half):
        result = read.acquire(wanted, limits, settings, now)
        results[read.source.where] = result
        count = sum(
            part.last_offset - part.first_offset + 1 for part in result.acquired
        )
        wanted = replace(wanted, max_records=wanted.max_records - count)
    return results


def _bytes(batches: Sequence[StoredBatch]) -> int:
    return sum(len(batch.data) for batch in batches)


def _shares(sources: Sequence[Source], limits: FetchLimits) -> list[tuple[Source, int]]:
    """Give each partition its share of the bytes: the same, or one each at least."""
    if limits.most >= len(sources):
        return [(source, limits.most // len(sources)) for source in sources]
    return [(source, int(at < limits.most)) for at, source in enumerate(sources)]


def _end(log: PartitionLog, limits: FetchLimits) -> int:
    return log.last_stable_offset if limits.read_committed else log.end_offset
