"""Fetch, partition by partition: check the leader and read the log."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.internal_topics import write_state_records
from sharecons.testing.broker.leaders import leader_error
from sharecons.testing.broker.topics import Partition

__all__ = ["FetchPartition", "PartitionRead", "ReadLimits", "TopicKey", "read_all"]

TopicKey: TypeAlias = str | uuid.UUID | None
"""A topic, by name or by id depending on the version."""

ANY_REPLICA_SINCE: Final = 11  # the version of Fetch (KIP-392)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPartition:
    """A fetch from one partition."""

    topic: TopicKey
    index: int
    offset: int
    max_bytes: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """The limits of a fetch."""

    max_bytes: int
    committed_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRead:
    """The records read from one partition, or an error."""

    request: FetchPartition
    code: ErrorCode = ErrorCode.none
    partition: Partition | None = None
    """The partition, if it exists and the client is allowed to read it."""
    high_watermark: int = -1
    last_stable_offset: int = -1
    start_offset: int = -1
    records: bytes = b""
    aborted: Sequence[tuple[int, int]] | None = None
    is_past_end: bool = False
    """The fetch offset is past the last committed record: the fetch does not wait."""


def read_all(
    requests: Iterable[FetchPartition], limits: ReadLimits, context: Context
) -> list[PartitionRead]:
    """Read partitions in order until the response is full.

    The first batch is returned even if it alone exceeds the limit (KIP-74). Partitions
    that do not exist or are not authorized come last.
    """
    reads: list[PartitionRead] = []
    rejected: list[PartitionRead] = []
    remaining, is_first = limits.max_bytes, True
    for each in requests:
        found = _find_partition(each, context)
        if isinstance(found, PartitionRead):
            (reads if found.partition else rejected).append(found)
            continue
        read = _read_partition(
            each, found, min(each.max_bytes, remaining), is_first, limits
        )
        remaining = max(0, remaining - len(read.records))
        is_first = is_first and not read.records
        reads.append(read)
    return reads + rejected


def _find_partition(
    request: FetchPartition, context: Context
) -> Partition | PartitionRead:
    name, topics = request.topic, context.cluster.topics
    topic = topics.by_name(name) if isinstance(name, str) else topics.by_id(name)
    if topic is None and not isinstance(name, str):
        return _rejected(request, ErrorCode.unknown_topic_id)
    known_as = topic.name if topic else str(name)
    if context.cluster.authorizer.denies("READ", "TOPIC", known_as):
        return _rejected(request, ErrorCode.topic_authorization_failed)
    write_state_records(context.cluster, topic)
    partition = topic.partition(request.index) if topic else None
    if partition is None:
        return _rejected(request, ErrorCode.unknown_topic_or_partition)
    code = leader_error(
        partition,
        request.leader_epoch,
        context.node_id,
        any_replica=context.version >= ANY_REPLICA_SINCE,
    )
    return (
        PartitionRead(request=request, code=code, partition=partition)
        if code
        else partition
    )


def _rejected(request: FetchPartition, code: ErrorCode) -> PartitionRead:
    # An empty list: null is for partitions that exist.
    return PartitionRead(request=request, code=code, aborted=[])


def _read_partition(
    request: FetchPartition,
    partition: Partition,
    max_bytes: int,
    is_first: bool,
    limits: ReadLimits,
) -> PartitionRead:
    log = partition.log
    if not log.start_offset <= request.offset <= log.end_offset:
        code = ErrorCode.offset_out_of_range
        return PartitionRead(request=request, code=code, partition=partition)
    end = log.last_stable_offset if limits.committed_only else log.end_offset
    records = log.read(request.offset, end, max_bytes, first_whole=is_first)
    aborted = None
    if limits.committed_only:
        # Kafka's list also covers later records: it looks at its index, which has at
        # most one entry for every 4 KiB.
        aborted = log.aborted(request.offset, end) if records else []
    return PartitionRead(
        request=request,
        partition=partition,
        high_watermark=log.end_offset,
        last_stable_offset=log.last_stable_offset,
        start_offset=log.start_offset,
        records=records,
        aborted=aborted,
        is_past_end=request.offset > end,
    )
