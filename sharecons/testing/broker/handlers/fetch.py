"""Fetch 4 to 18: read records, and wait if there are none.

Sessions exist from version 7 (KIP-227), leader epochs from 9 (KIP-320), fetches from
followers from 11 (KIP-392), topic ids from 13 (KIP-516), current leaders from 16
(KIP-951). The first batch is returned whole even if it exceeds the limit; the last one
of a partition can be incomplete, as in a file that is read by bytes.

A fetch waits while it has fewer bytes than the minimum and no existing partition has an
error. Partitions that do not exist do not end the wait.
"""

import uuid
from collections.abc import Iterable
from typing import Final

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.fetch_partitions import (
    PartitionRead,
    ReadLimits,
    read_all,
)
from sharecons.testing.broker.fetch_sessions import (
    FetchContext,
    FetchPartition,
    FetchSessionError,
)
from sharecons.testing.broker.leaders import leader_fields, node_endpoints
from sharecons.testing.broker.txn_markers import abort_expired
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["handle"]

TOPIC_IDS_SINCE: Final = 13
LEADER_HINTS_SINCE: Final = 16
READ_COMMITTED: Final = 1
MAX_BYTES: Final = 55 * 1024 * 1024  # Kafka's fetch.max.bytes
NO_SESSION: Final = (0, -1)
LEADER_ERRORS: Final = (ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch)


async def handle(request: Request, context: Context) -> Response:
    sessions = context.cluster.fetch_sessions
    try:
        fetch = _begin(request, context)
    except FetchSessionError as error:
        return {"error_code": error.code}
    reads = await _read(fetch, request, context)
    statuses = {read.request.topic_partition: read.status for read in reads}
    session_id, to_send = sessions.finish(fetch, statuses)
    kept = [read for read in reads if read.request.topic_partition in to_send]
    with_hint = [read for read in kept if _has_hint(read, context)]
    return {
        "session_id": session_id,
        "responses": _topics(kept, context),
        "node_endpoints": node_endpoints(
            context, [read.partition.leader for read in with_hint if read.partition]
        ),
    }


def _begin(request: Request, context: Context) -> FetchContext:
    by_id = context.version >= TOPIC_IDS_SINCE
    partitions = [
        FetchPartition(
            topic_partition=(_key(topic, by_id), each.partition),
            offset=each.fetch_offset,
            max_bytes=each.partition_max_bytes,
            leader_epoch=field_or(each, "current_leader_epoch", -1),
        )
        for topic in request.topics
        for each in topic.partitions
    ]
    forgotten = [
        (_key(topic, by_id), index)
        for topic in field_or(request, "forgotten_topics_data", ())
        for index in topic.partitions
    ]
    session_id, session_epoch = NO_SESSION
    return context.cluster.fetch_sessions.begin(
        context.node_id,
        (
            field_or(request, "session_id", session_id),
            field_or(request, "session_epoch", session_epoch),
        ),
        partitions,
        forgotten,
        by_id=by_id,
    )


def _key(topic: Request, by_id: bool) -> str | uuid.UUID | None:
    name: str | uuid.UUID | None = topic.topic_id if by_id else topic.topic
    return name


async def _read(
    fetch: FetchContext, request: Request, context: Context
) -> list[PartitionRead]:
    """Read until there are enough bytes, or the wait time is over."""
    cluster = context.cluster
    limits = ReadLimits(
        max_bytes=min(request.max_bytes, MAX_BYTES),
        committed_only=request.isolation_level == READ_COMMITTED,
    )
    until = context.now + request.max_wait.total_seconds()
    while True:
        abort_expired(cluster, context.now, milliseconds())
        cluster.share_partitions.advance(context.now)
        reads = read_all(fetch.partitions, limits, context)
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
    topics: dict[str | uuid.UUID | None, list[Response]] = {}
    for read in reads:
        topic, _ = read.request.topic_partition
        topics.setdefault(topic, []).append(_partition(read, context))
    key = "topic_id" if context.version >= TOPIC_IDS_SINCE else "topic"
    return [{key: topic, "partitions": parts} for topic, parts in topics.items()]


def _partition(read: PartitionRead, context: Context) -> Response:
    _, index = read.request.topic_partition
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
        "partition_index": index,
        "error_code": read.code,
        "high_watermark": read.high_watermark,
        "last_stable_offset": read.last_stable_offset,
        "log_start_offset": read.start_offset,
        "aborted_transactions": aborted,
        "records": read.records,
        **hint,
    }
