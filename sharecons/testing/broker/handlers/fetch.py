"""Fetch 4 to 18: read records, and wait if there are none.

Leader epochs exist from version 9 (KIP-320), fetches from followers from 11 (KIP-392),
topic ids from 13 (KIP-516), current leaders from 16 (KIP-951). Version 7 has sessions
(KIP-227): none is opened here, as in a Kafka whose session cache is full, so that
clients send all partitions with each fetch. The first batch is returned whole even if
it exceeds the limit; the last one of a partition can be incomplete, as in a file that
is read by bytes.

A fetch waits while it has fewer bytes than the minimum and no existing partition has an
error. Partitions that do not exist do not end the wait.
"""

from collections.abc import Iterable
from typing import Final

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.fetch_partitions import (
    FetchPartition,
    PartitionRead,
    ReadLimits,
    TopicKey,
    read_all,
)
from sharecons.testing.broker.leaders import leader_fields, node_endpoints
from sharecons.testing.broker.txn_markers import abort_expired
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["handle"]

TOPIC_IDS_SINCE: Final = 13
LEADER_HINTS_SINCE: Final = 16
READ_COMMITTED: Final = 1
MAX_BYTES: Final = 55 * 1024 * 1024  # Kafka's fetch.max.bytes
WITHOUT_SESSION: Final = (0, -1)
"""The session epochs that open a session, or have none."""

LEADER_ERRORS: Final = (ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch)


async def handle(request: Request, context: Context) -> Response:
    if field_or(request, "session_epoch", -1) not in WITHOUT_SESSION:
        return {"error_code": ErrorCode.fetch_session_id_not_found}
    reads = await _read(request, context)
    with_hint = [read for read in reads if _has_hint(read, context)]
    return {
        "responses": _topics(reads, context),
        "node_endpoints": node_endpoints(
            context, [read.partition.leader for read in with_hint if read.partition]
        ),
    }


def _partitions(request: Request, context: Context) -> list[FetchPartition]:
    by_id = context.version >= TOPIC_IDS_SINCE
    return [
        FetchPartition(
            topic=topic.topic_id if by_id else topic.topic,
            index=each.partition,
            offset=each.fetch_offset,
            max_bytes=each.partition_max_bytes,
            leader_epoch=field_or(each, "current_leader_epoch", -1),
        )
        for topic in request.topics
        for each in topic.partitions
    ]


async def _read(request: Request, context: Context) -> list[PartitionRead]:
    """Read until there are enough bytes, or the wait time is over."""
    cluster = context.cluster
    limits = ReadLimits(
        max_bytes=min(request.max_bytes, MAX_BYTES),
        committed_only=request.isolation_level == READ_COMMITTED,
    )
    partitions = _partitions(request, context)
    until = context.now + request.max_wait.total_seconds()
    while True:
        abort_expired(cluster, context.now, milliseconds())
        cluster.share_partitions.advance(context.now)
        reads = read_all(partitions, limits, context)
        enough = _is_enough(reads, min(request.min_bytes, limits.max_bytes))
        if enough or context.now >= until:
            return reads
        signals = [read.partition.log.changed for read in reads if read.partition]
        next_abort = cluster.transactions.next_deadline
        next_write = cluster.share_partitions.next_deadline
        wake_at = min(until, next_abort, next_write)
        await context.wait([cluster.changed, *signals], wake_at)


def _is_enough(reads: Iterable[PartitionRead], min_bytes: int) -> bool:
    existing = [read for read in reads if read.partition is not None]
    if not existing or any(read.code or read.is_past_end for read in existing):
        return True
    return sum(len(read.records) for read in existing) >= min_bytes


def _has_hint(read: PartitionRead, context: Context) -> bool:
    return context.version >= LEADER_HINTS_SINCE and read.code in LEADER_ERRORS


def _topics(reads: Iterable[PartitionRead], context: Context) -> list[Response]:
    topics: dict[TopicKey, list[Response]] = {}
    for read in reads:
        topics.setdefault(read.request.topic, []).append(_partition(read, context))
    key = "topic_id" if context.version >= TOPIC_IDS_SINCE else "topic"
    return [{key: topic, "partitions": parts} for topic, parts in topics.items()]


def _partition(read: PartitionRead, context: Context) -> Response:
    aborted = None
    if read.aborted is not None:
        aborted = [
            {"producer_id": producer_id, "first_offset": first_offset}
            for producer_id, first_offset in read.aborted
        ]
    hint = {}
    if read.partition is not None and _has_hint(read, context):
        hint = {"current_leader": leader_fields(read.partition)}
    return {
        "partition_index": read.request.index,
        "error_code": read.code,
        "high_watermark": read.high_watermark,
        "last_stable_offset": read.last_stable_offset,
        "log_start_offset": read.start_offset,
        "aborted_transactions": aborted,
        "records": read.records,
        **hint,
    }
