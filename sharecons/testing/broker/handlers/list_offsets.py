"""ListOffsets 1 to 10: the offset of a timestamp, or of an end of a partition.

Negative timestamps are ends: the first record (-2, or -4 on the broker's own disk), the
next record (-1), the record with the greatest timestamp (-3, since version 7), the
last in tiered storage (-5, always none). For consumers of committed records the log
ends at the last stable offset (version 2).
"""

import enum
from collections import Counter
from collections.abc import Mapping
from typing import Final

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.internal_topics import write_state_records
from sharecons.testing.broker.leaders import leader_error
from sharecons.testing.broker.log.partition_log import LogPosition
from sharecons.testing.broker.topics import Partition
from sharecons.testing.broker.transactions import TopicPartition
from sharecons.testing.broker.txn_markers import abort_expired
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["handle"]

NO_TIME: Final = -1
NO_OFFSET: Final = -1
NO_EPOCH: Final = -1
ANY_VERSION: Final = 2**15  # greater than any version


class SpecialTimestamp(enum.IntEnum):
    """The timestamps with a special meaning."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


SUPPORTED_SINCE: Final[Mapping[int, int]] = {
    SpecialTimestamp.LATEST: 1,
    SpecialTimestamp.EARLIEST: 1,
    SpecialTimestamp.MAX_TIMESTAMP: 7,
    SpecialTimestamp.EARLIEST_LOCAL: 8,
    SpecialTimestamp.LATEST_TIERED: 9,
}
"""The first version that supports each."""

READ_COMMITTED: Final = 1
CONSUMER: Final = -1
NOT_FOUND: Final = LogPosition(NO_OFFSET, NO_TIME, NO_EPOCH)


async def handle(request: Request, context: Context) -> Response:
    abort_expired(context.cluster, context.now, milliseconds())
    context.cluster.share_partitions.advance(context.now)
    duplicates = _duplicates(request)
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    _error_result(each, ErrorCode.invalid_request)
                    if (topic.name, each.partition_index) in duplicates
                    else _look_up(request, topic.name, each, context)
                    for each in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    }


def _look_up(
    request: Request, name: str, request_partition: Request, context: Context
) -> Response:
    topic = context.cluster.topics.by_name(name)
    write_state_records(context.cluster, topic)
    partition = topic.partition(request_partition.partition_index) if topic else None
    if context.cluster.authorizer.denies("DESCRIBE", "TOPIC", name):
        return _error_result(request_partition, ErrorCode.topic_authorization_failed)
    if context.version < SUPPORTED_SINCE.get(
        request_partition.timestamp,
        ANY_VERSION if request_partition.timestamp < 0 else 0,
    ):
        return _error_result(request_partition, ErrorCode.unsupported_version)
    if partition is None:
        return _error_result(request_partition, ErrorCode.unknown_topic_or_partition)
    leader_epoch = field_or(request_partition, "current_leader_epoch", NO_EPOCH)
    if code := leader_error(partition, leader_epoch, context.node_id):
        return _error_result(request_partition, code)
    found = _find(
        partition, request_partition.timestamp, _end_offset(request, partition)
    )
    return {
        "partition_index": request_partition.partition_index,
        "timestamp": found.timestamp,
        "offset": found.offset,
        "leader_epoch": found.leader_epoch,
    }


def _error_result(request: Request, code: ErrorCode) -> Response:
    return {"partition_index": request.partition_index, "error_code": code}


def _duplicates(request: Request) -> frozenset[TopicPartition]:
    """Return the partitions that are requested twice, which Kafka rejects."""
    counts = Counter(
        (topic.name, each.partition_index)
        for topic in request.topics
        for each in topic.partitions
    )
    return frozenset(partition for partition, times in counts.items() if times > 1)


def _end_offset(request: Request, partition: Partition) -> int:
    """Return the end of the log for this client."""
    committed = field_or(request, "isolation_level", 0) == READ_COMMITTED
    if committed and request.replica_id == CONSUMER:
        return partition.log.last_stable_offset
    return partition.log.end_offset


def _find(partition: Partition, timestamp: int, end_offset: int) -> LogPosition:
    log = partition.log
    match timestamp:
        case SpecialTimestamp.LATEST:
            return LogPosition(end_offset, NO_TIME, partition.leader_epoch)
        case SpecialTimestamp.EARLIEST | SpecialTimestamp.EARLIEST_LOCAL:
            epoch = log.earliest_epoch(partition.leader_epoch)
            return LogPosition(log.start_offset, NO_TIME, epoch)
        case SpecialTimestamp.LATEST_TIERED:
            return NOT_FOUND
        case SpecialTimestamp.MAX_TIMESTAMP:
            found = log.find_max_timestamp()
        case _:
            found = log.find_timestamp(timestamp)
    return NOT_FOUND if found is None or found.offset >= end_offset else found
