"""ShareFetch (78): records to acquire, acknowledgements that ride along.

Version 1 (Kafka 4.1) has no acquire mode and no renewals; there `record_limit`
cannot be asked for, and a fetch brings whole batches.

Written and read by hand (see `fields`); the tests hold it against kio.
"""

import struct
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final

from sharecons.errors import ProtocolError
from sharecons.protocol.values import (
    Endpoint,
    FetchedPartition,
    PartitionLeader,
    Range,
    ShareFetch,
    ShareFetched,
    SharePartition,
)
from sharecons.wire.api import Api, Frame
from sharecons.wire.fields import NO_TAGS, FieldReader, text_field, varint
from sharecons.wire.share_topics import by_topic

__all__ = ["SHARE_FETCH"]

VERSIONS: Final = range(1, 3)
RECORD_LIMIT_SINCE: Final = 2

INT32_MAX: Final = 0x7FFFFFFF

# ShareSessionEpoch, MaxWaitMs, MinBytes, MaxBytes, MaxRecords, BatchSize
_NUMBERS: Final = Struct(">iiiiii")
# ShareAcquireMode, IsRenewAck
_MODE: Final = Struct(">b?")
_INDEX: Final = Struct(">i")
_OFFSETS: Final = Struct(">qq")
# ThrottleTimeMs, ErrorCode, ErrorMessage (null), AcquisitionLockTimeoutMs
_HEAD: Final = Struct(">ihBi")
# PartitionIndex, ErrorCode, ErrorMessage (null), AcknowledgeErrorCode, its message
# (null), LeaderId, LeaderEpoch, the number of tagged fields: so nearly all begin.
_PARTITION: Final = Struct(">ihBhBiiB")
# FirstOffset, LastOffset, DeliveryCount, the number of tagged fields
_ACQUIRED: Final = Struct(">qqhB")

# Of nearly all partitions of all answers; making it takes as long as reading it.
_UNTOLD: Final = PartitionLeader(-1, -1)

# The fewest bytes of an element: what has a fixed size, and one for what has not.
TOPIC_SIZE: Final = 18
PARTITION_SIZE: Final = 22
NODE_SIZE: Final = 11


def _write(request: ShareFetch, version: int) -> bytes:
    try:
        return b"".join(_written(request, version))
    except (struct.error, ValueError) as error:
        raise ProtocolError(f"cannot write a ShareFetch: {error}") from error


def _written(request: ShareFetch, version: int) -> list[bytes]:
    parts = [
        text_field(request.group_id),
        text_field(request.member_id),
        _NUMBERS.pack(
            request.share_session_epoch,
            min(round(request.max_wait * 1000), INT32_MAX),
            request.min_bytes,
            request.max_bytes,
            request.max_records,
            request.max_records,
        ),
    ]
    if version >= RECORD_LIMIT_SINCE:
        parts.append(_MODE.pack(request.record_limit, False))
    said = request.acknowledgements
    topics = by_topic(request.added.union(said))
    parts.append(varint(len(topics) + 1))
    for topic_id, partitions in topics.items():
        parts += (topic_id, varint(len(partitions) + 1))
        for share_partition in partitions:
            parts.append(_INDEX.pack(share_partition.partition))
            _write_ranges(parts, said.get(share_partition, ()))
        parts.append(NO_TAGS)
    _write_forgotten(parts, request.forgotten)
    parts.append(NO_TAGS)
    return parts


def _write_ranges(parts: list[bytes], ranges: Sequence[Range]) -> None:
    parts.append(varint(len(ranges) + 1))
    for first, last, kinds in ranges:
        parts += (_OFFSETS.pack(first, last), varint(len(kinds) + 1), kinds, NO_TAGS)
    parts.append(NO_TAGS)


def _write_forgotten(parts: list[bytes], forgotten: Iterable[SharePartition]) -> None:
    topics = by_topic(forgotten)
    parts.append(varint(len(topics) + 1))
    for topic_id, partitions in topics.items():
        parts += (topic_id, varint(len(partitions) + 1))
        parts += [_INDEX.pack(each.partition) for each in partitions]
        parts.append(NO_TAGS)


def _read(frame: Frame, offset: int, version: int) -> ShareFetched:
    view = memoryview(frame)
    reader = FieldReader(view, offset)
    try:
        answer = _answer(view, reader, version)
    except (struct.error, ValueError, IndexError) as error:
        raise ProtocolError(f"the broker's answer is no ShareFetch: {error}") from error
    if reader.position != len(frame):
        extra = len(frame) - reader.position
        raise ProtocolError(f"the broker's answer has {extra} bytes beyond its fields")
    return answer


def _answer(frame: memoryview, reader: FieldReader, version: int) -> ShareFetched:
    throttle, error, message, lock_timeout = _head(frame, reader)
    partitions: list[FetchedPartition] = []
    for _ in range(reader.count(TOPIC_SIZE)):
        topic_id = reader.topic_id()
        count = reader.count(PARTITION_SIZE)
        partitions += [_partition(frame, reader, topic_id) for _ in range(count)]
        reader.skip_tags()
    endpoints: dict[int, Endpoint] = {}
    for _ in range(reader.count(NODE_SIZE)):
        node_id = reader.int32()
        endpoints[node_id] = _endpoint(reader)
    reader.skip_tags()
    return ShareFetched(
        error=error,
        message=message,
        lock_timeout=max(0.0, lock_timeout / 1000),
        renewable=version >= RECORD_LIMIT_SINCE,
        partitions=tuple(partitions),
        endpoints=endpoints,
        throttle=throttle / 1000,
    )


def _head(frame: memoryview, reader: FieldReader) -> tuple[int, int, str | None, int]:
    throttle: int
    error: int
    length: int
    lock_timeout: int
    throttle, error, length, lock_timeout = _HEAD.unpack_from(frame, reader.position)
    if not length:
        reader.position += _HEAD.size
        return throttle, error, None, lock_timeout
    return reader.int32(), reader.int16(), reader.text(), reader.int32()


def _partition(
    frame: memoryview, reader: FieldReader, topic_id: bytes
) -> FetchedPartition:
    index: int
    error: int
    length: int
    acknowledge_error: int
    acknowledge_length: int
    leader_id: int
    leader_epoch: int
    tags: int
    (
        index,
        error,
        length,
        acknowledge_error,
        acknowledge_length,
        leader_id,
        leader_epoch,
        tags,
    ) = _PARTITION.unpack_from(frame, reader.position)
    message: str | None = None
    acknowledge_message: str | None = None
    if length or acknowledge_length or tags:
        index = reader.int32()
        error = reader.int16()
        message = reader.text()
        acknowledge_error = reader.int16()
        acknowledge_message = reader.text()
        leader_id, leader_epoch = reader.int32(), reader.int32()
        reader.skip_tags()
    else:
        reader.position += _PARTITION.size
    leader = _UNTOLD
    if leader_id != _UNTOLD.leader_id or leader_epoch != _UNTOLD.leader_epoch:
        leader = PartitionLeader(leader_id, leader_epoch)
    share_partition = SharePartition(topic_id, index)
    records = reader.data()
    acquired = _acquired(frame, reader, share_partition)
    reader.skip_tags()
    return FetchedPartition(
        share_partition=share_partition,
        error=error,
        message=message,
        acknowledge_error=acknowledge_error,
        acknowledge_message=acknowledge_message,
        leader=leader,
        records=records,
        acquired=acquired,
    )


def _acquired(
    frame: memoryview, reader: FieldReader, where: SharePartition
) -> tuple[tuple[int, int, int], ...]:
    acquired: list[tuple[int, int, int]] = []
    after = -1
    first: int
    last: int
    count: int
    tags: int
    for _ in range(reader.count(_ACQUIRED.size)):
        first, last, count, tags = _ACQUIRED.unpack_from(frame, reader.position)
        reader.position += _ACQUIRED.size - 1
        if tags:
            reader.skip_tags()
        else:
            reader.position += 1
        if not after < first <= last:
            raise ValueError(
                f"acquired ranges of {where} are not ascending: {first} to {last} "
                f"after {after}"
            )
        after = last
        acquired.append((first, last, count))
    return tuple(acquired)


def _endpoint(reader: FieldReader) -> Endpoint:
    host = reader.text()
    if host is None:
        raise ValueError("null, where a node's host is to be")
    port = reader.int32()
    reader.text()  # its rack
    reader.skip_tags()
    return Endpoint(host, port)


SHARE_FETCH: Final[Api[ShareFetch, ShareFetched]] = Api(
    key=78,
    name="ShareFetch",
    versions=VERSIONS,
    write=_write,
    read=_read,
    since="4.1",
)
