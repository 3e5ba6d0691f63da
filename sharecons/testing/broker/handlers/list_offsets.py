"""ListOffsets 1 to 10: the offset of a timestamp, or of an end of a partition.

Negative timestamps are ends: the first record (-2, or -4 on the broker's own disk), the
next record (-1), the record with the greatest timestamp (-3, from version 7 on), the
last in tiered storage (-5, always none). For consumers of committed records the log
ends at the last stable offset (version 2).
"""

import enum
from collections import Counter
from collections.abc import Mapping
from typing import Final

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.leaders import leader_error
from sharecons.testing.broker.log.partition_log import Found
from sharecons.testing.broker.topics import Partition
from sharecons.testing.broker.transactions import TopicPartition
from sharecons.testing.broker.txn_markers import abort_expired
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["handle"]

NO_TIME: Final = -1
NO_OFFSET: Final = -1
NO_EPOCH: Final = -1
LAST: Final = 2**15  # greater than any version


class Ends(enum.IntEnum):
    """The timestamps with a special meaning."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


SINCE: Final[Mapping[int, int]] = {
    Ends.LATEST: 1,
    Ends.EARLIEST: 1,
    Ends.MAX_TIMESTAMP: 7,
    Ends.EARLIEST_LOCAL: 8,
    Ends.LATEST_TIERED: 9,
}
"""The first version that supports each."""

COMMITTED: Final = 1
CONSUMER: Final = -1
NOTHING: Final = Found(NO_OFFSET, NO_TIME, NO_EPOCH)


async def handle(request: Request, context: Context) -> Response:
    abort_expired(context.cluster, context.now, milliseconds())
    context.cluster.share_partitions.advance(context.now)
    twice = _twice(request)
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    _refused(each, ErrorCode.invalid_request)
                    if (topic.name, each.partition_index) in twice
                    else _look_up(request, topic.name, each, context)
                    for each in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    }


def _look_up(
    request: Request, name: str, wanted: Request, context: Context
) -> Response:
    topic = context.cluster.topics.by_name(name)
    place = topic.partition(wanted.partition_index) if topic else None
    if context.cluster.authorizer.denies("DESCRIBE", "TOPIC", name):
        return _refused(wanted, ErrorCode.topic_authorization_failed)
    if context.version < SINCE.get(
        wanted.timestamp, LAST if wanted.timestamp < 0 else 0
    ):
        return _refused(wanted, ErrorCode.unsupported_version)
    if place is None:
        return _refused(wanted, ErrorCode.unknown_topic_or_partition)
    leader_epoch = field_or(wanted, "current_leader_epoch", NO_EPOCH)
    if code := leader_error(place, leader_epoch, context.node_id):
        return _refused(wanted, code)
    found = _find(place, wanted.timestamp, _readable(request, place))
    return {
        "partition_index": wanted.partition_index,
        "timestamp": found.timestamp,
        "offset": found.offset,
        "leader_epoch": found.leader_epoch,
    }


def _refused(wanted: Request, code: ErrorCode) -> Response:
    return {"partition_index": wanted.partition_index, "error_code": code}


def _twice(request: Request) -> frozenset[TopicPartition]:
    """Return the partitions that are requested twice, which Kafka rejects."""
    asked = Counter(
        (topic.name, each.partition_index)
        for topic in request.topics
        for each in topic.partitions
    )
    return frozenset(place for place, times in asked.items() if times > 1)


def _readable(request: Request, place: Partition) -> int:
    """Return the end of the log for this client."""
    committed = field_or(request, "isolation_level", 0) == COMMITTED
    if committed and request.replica_id == CONSUMER:
        return place.log.last_stable_offset
    return place.log.end_offset


def _find(place: Partition, timestamp: int, readable: int) -> Found:
    log = place.log
    match timestamp:
        case Ends.LATEST:
            return Found(readable, NO_TIME, place.leader_epoch)
        case Ends.EARLIEST | Ends.EARLIEST_LOCAL:
            epoch = log.earliest_epoch(place.leader_epoch)
            return Found(log.start_offset, NO_TIME, epoch)
        case Ends.LATEST_TIERED:
            return NOTHING
        case Ends.MAX_TIMESTAMP:
            found = log.latest_time()
        case _:
            found = log.at_time(timestamp)
    return NOTHING if found is None or found.offset >= readable else found
