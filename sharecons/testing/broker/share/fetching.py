"""One look at the partitions of a ShareFetch: is there enough, and what is acquired.

A request is looked at when it comes, each time that something has changed in one of its
partitions, and when its time is up; then it takes what there is (KIP-932, "Fetching and
acknowledging records").
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from sharecons.testing.broker.log.partition_log import PartitionLog, StoredBatch
from sharecons.testing.broker.share.acquiring import Wanted
from sharecons.testing.broker.share.deliveries import AcquiredRecords, GroupSettings
from sharecons.testing.broker.share.isolation import aborted_ranges
from sharecons.testing.broker.share.partition import SharePartition
from sharecons.testing.broker.share.sessions import TopicPartition

__all__ = ["FetchLimits", "Fetched", "Source", "fetched", "is_enough"]

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


def is_enough(sources: Sequence[Source], limits: FetchLimits) -> bool:
    """Tell whether there is as much as a fetch has asked for.

    As Kafka does it, all that lies behind the first offset to be acquired is counted,
    also what others hold.
    """
    if not sources:
        return False
    size = 0
    for source, most in zip(sources, _shares(sources, limits), strict=True):
        offset, end = source.partition.next_fetch_offset(), _end(source.log, limits)
        if not source.log.start_offset <= offset <= source.log.end_offset:
            return True  # which is told the partition by fetching from it
        batches = source.log.batches(offset, end, most)
        size += min(sum(len(batch.data) for batch in batches), most)
        if batches and batches[-1].last_offset + 1 < end:
            size += most - min(sum(len(batch.data) for batch in batches), most)
    return size >= min(limits.min_bytes, limits.most)


def fetched(
    sources: Sequence[Source],
    limits: FetchLimits,
    wanted: Wanted,
    settings: GroupSettings,
    now: float,
) -> dict[TopicPartition, Fetched]:
    """Read from each partition in turn, and acquire what may be acquired."""
    results: dict[TopicPartition, Fetched] = {}
    read = _read(sources, limits)
    left = wanted.max_records
    for source, (offset, batches) in zip(sources, read, strict=True):
        result = results[source.where] = Fetched(batches=batches)
        if not source.log.start_offset <= offset <= source.log.end_offset:
            source.partition.log_start_moved(source.log.start_offset)
            continue
        result.acquired = source.partition.acquire(
            _less(wanted, left),
            offset,
            batches,
            settings,
            now,
            aborted_ranges(source.log, batches) if limits.read_committed else (),
        )
        left -= sum(
            part.last_offset - part.first_offset + 1 for part in result.acquired
        )
    return results


def _read(
    sources: Sequence[Source], limits: FetchLimits
) -> list[tuple[int, list[StoredBatch]]]:
    """Read batches; of the first partition that has any at least one."""
    read = []
    left, is_first = limits.most, True
    for source, most in zip(sources, _shares(sources, limits), strict=True):
        offset = source.partition.next_fetch_offset()
        batches: list[StoredBatch] = []
        if source.log.start_offset <= offset:
            batches = source.log.batches(
                offset, _end(source.log, limits), min(most, left)
            )
        if not is_first and batches and len(batches[0].data) > min(most, left):
            batches = []
        is_first = is_first and not batches
        left = max(left - sum(len(batch.data) for batch in batches), 0)
        read.append((offset, batches))
    return read


def _shares(sources: Sequence[Source], limits: FetchLimits) -> list[int]:
    """Give each partition its share of the bytes: the same, or one each at least."""
    if sources and limits.most >= len(sources):
        return [limits.most // len(sources)] * len(sources)
    return [int(index < limits.most) for index in range(len(sources))]


def _end(log: PartitionLog, limits: FetchLimits) -> int:
    return log.last_stable_offset if limits.read_committed else log.end_offset


def _less(wanted: Wanted, left: int) -> Wanted:
    return Wanted(
        member=wanted.member,
        max_records=left,
        batch_size=wanted.batch_size,
        record_limit=wanted.record_limit,
    )
