"""Fetch, partition by partition: check the leader and read the log."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.fetch_sessions import News, Wanted
from sharecons.testing.broker.leaders import fault_of_leader
from sharecons.testing.broker.topics import Partition, Topic

__all__ = ["Limits", "Read", "read_all", "topic_of"]

ANY_REPLICA_SINCE: Final = 11  # the version of Fetch (KIP-392)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a fetch."""

    max_bytes: int
    committed_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The records read from one partition, or an error."""

    wanted: Wanted
    code: ErrorCode = ErrorCode.none
    place: Partition | None = None
    """The partition, if it exists and may be read."""
    high_watermark: int = -1
    last_stable_offset: int = -1
    start_offset: int = -1
    records: bytes = b""
    aborted: Sequence[tuple[int, int]] | None = None
    is_past_end: bool = False
    """The fetch offset is past the last committed record: the fetch does not wait."""

    @property
    def news(self) -> News:
        return News(
            self.high_watermark,
            self.start_offset,
            has_records=bool(self.records),
            is_error=bool(self.code),
        )


def topic_of(wanted: Wanted, context: Context) -> Topic | None:
    name, _ = wanted.spot
    topics = context.cluster.topics
    return topics.named(name) if isinstance(name, str) else topics.with_id(name)


def read_all(wanted: Iterable[Wanted], limits: Limits, context: Context) -> list[Read]:
    """Read partitions in order until the response is full.

    The first batch is returned even if it alone exceeds the limit (KIP-74). Partitions
    that do not exist or are not authorized come last.
    """
    reads: list[Read] = []
    refused: list[Read] = []
    room, is_first = limits.max_bytes, True
    for each in wanted:
        found = _find(each, context)
        if isinstance(found, Read):
            (reads if found.place else refused).append(found)
            continue
        read = _read(each, found, min(each.max_bytes, room), is_first, limits)
        room = max(0, room - len(read.records))
        is_first = is_first and not read.records
        reads.append(read)
    return reads + refused


def _find(wanted: Wanted, context: Context) -> Partition | Read:
    name, index = wanted.spot
    topic = topic_of(wanted, context)
    if topic is None and not isinstance(name, str):
        return _refused(wanted, ErrorCode.unknown_topic_id)
    known_as = topic.name if topic else str(name)
    if context.cluster.access.denies("READ", "TOPIC", known_as):
        return _refused(wanted, ErrorCode.topic_authorization_failed)
    place = topic.partition(index) if topic else None
    if place is None:
        return _refused(wanted, ErrorCode.unknown_topic_or_partition)
    code = fault_of_leader(
        place,
        wanted.leader_epoch,
        context.node_id,
        any_replica=context.version >= ANY_REPLICA_SINCE,
    )
    return Read(wanted=wanted, code=code, place=place) if code else place


def _refused(wanted: Wanted, code: ErrorCode) -> Read:
    # An empty list: null is for partitions that exist.
    return Read(wanted=wanted, code=code, aborted=[])


def _read(
    wanted: Wanted, place: Partition, room: int, is_first: bool, limits: Limits
) -> Read:
    log = place.log
    if not log.start_offset <= wanted.offset <= log.end_offset:
        code = ErrorCode.offset_out_of_range
        return Read(wanted=wanted, code=code, place=place)
    end = log.last_stable_offset if limits.committed_only else log.end_offset
    records = log.read(wanted.offset, end, room, first_whole=is_first)
    aborted = None
    if limits.committed_only:
        # Kafka's list also covers later records: it looks at its index, which has at
        # most one entry for every 4 KiB.
        aborted = log.aborted(wanted.offset, end) if records else []
    return Read(
        wanted=wanted,
        place=place,
        high_watermark=log.end_offset,
        last_stable_offset=log.last_stable_offset,
        start_offset=log.start_offset,
        records=records,
        aborted=aborted,
        is_past_end=wanted.offset > end,
    )
