"""ShareFetch (78): acquires records, and carries acknowledgements.

Version 1 (Kafka 4.1) has no acquire mode and no renewals: `record_limit` is not
available, and a fetch returns whole batches.

Encoded and decoded without kio (see `codec.fields`); tests compare it with kio.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from types import ModuleType
from typing import Any, Final

from sharecons.errors import ProtocolError
from sharecons.protocol.partitions import (
    Endpoint,
    PartitionLeader,
    SharePartition,
    TopicId,
)
from sharecons.protocol.share_messages import (
    PartitionResponse,
    Range,
    ShareFetch,
    ShareFetchResponse,
)
from sharecons.wire.codec.api import Api, Frame
from sharecons.wire.codec.fields import (
    NO_TAGS,
    FieldReader,
    milliseconds,
    text_field,
    varint,
)

__all__ = ["RECORD_LIMIT_SINCE", "SHARE_FETCH", "batches", "by_topic", "endpoints"]

VERSIONS: Final = range(1, 3)
RECORD_LIMIT_SINCE: Final = 2


# ShareSessionEpoch, MaxWaitMs, MinBytes, MaxBytes, MaxRecords, BatchSize
_NUMBERS: Final = Struct(">iiiiii")
# ShareAcquireMode, IsRenewAck
_MODE: Final = Struct(">b?")
_INDEX: Final = Struct(">i")
_OFFSETS: Final = Struct(">qq")

# The leader of nearly all partitions in responses: creating it takes as long as reading
# it. Where there is no new leader, Kafka sends zeros (the schema has no default).
_NO_LEADER: Final = PartitionLeader(-1, -1)
_ZERO_LEADER: Final = PartitionLeader(0, 0)

# Minimum bytes of an array's element: its fixed-size fields, and 1 for each other one.
TOPIC_SIZE: Final = 18
PARTITION_SIZE: Final = 22
ACQUIRED_SIZE: Final = 19
NODE_SIZE: Final = 11


def _write(request: ShareFetch, version: int) -> bytes:
    try:
        return b"".join(_encode(request, version))
    except (struct.error, ValueError) as error:
        raise ProtocolError(f"cannot write a ShareFetch: {error}") from error


def _encode(request: ShareFetch, version: int) -> list[bytes]:
    parts = [
        text_field(request.group_id),
        text_field(request.member_id),
        _NUMBERS.pack(
            request.share_session_epoch,
            milliseconds(request.max_wait),
            request.min_bytes,
            request.max_bytes,
            request.max_records,
            request.max_records,
        ),
    ]
    if version >= RECORD_LIMIT_SINCE:
        parts.append(_MODE.pack(request.record_limit, False))
    acknowledgements = request.acknowledgements
    topics = by_topic(request.added.union(acknowledgements))
    parts.append(varint(len(topics) + 1))
    for topic_id, partitions in topics.items():
        parts += (topic_id, varint(len(partitions) + 1))
        for share_partition in partitions:
            parts.append(_INDEX.pack(share_partition.partition))
            _write_ranges(parts, acknowledgements.get(share_partition, ()))
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


def _read(frame: Frame, offset: int, version: int) -> ShareFetchResponse:
    reader = FieldReader(frame, offset)
    try:
        response = _decode(reader, version)
    except ValueError as error:
        raise ProtocolError(f"invalid ShareFetch response: {error}") from error
    if reader.position != len(frame):
        extra = len(frame) - reader.position
        raise ProtocolError(f"invalid ShareFetch response: {extra} bytes after its end")
    return response


def _decode(reader: FieldReader, version: int) -> ShareFetchResponse:
    throttle, error, message = reader.int32(), reader.int16(), reader.text()
    lock_timeout = reader.int32()
    partitions: list[PartitionResponse] = []
    for _ in range(reader.count(TOPIC_SIZE)):
        topic_id = reader.topic_id()
        count = reader.count(PARTITION_SIZE)
        partitions += [_partition(reader, topic_id) for _ in range(count)]
        reader.skip_tags()
    endpoints: dict[int, Endpoint] = {}
    for _ in range(reader.count(NODE_SIZE)):
        node_id = reader.int32()
        endpoints[node_id] = _endpoint(reader)
    reader.skip_tags()
    return ShareFetchResponse(
        error=error,
        message=message,
        lock_timeout=max(0.0, lock_timeout / 1000),
        renewable=version >= RECORD_LIMIT_SINCE,
        partitions=tuple(partitions),
        endpoints=endpoints,
        throttle=throttle / 1000,
    )


def _partition(reader: FieldReader, topic_id: bytes) -> PartitionResponse:
    # Bypass the constructor, which is plain Python (see `protocol.share_messages`).
    share_partition = tuple.__new__(SharePartition, (topic_id, reader.int32()))
    error, message = reader.int16(), reader.text()
    acknowledge_error, acknowledge_message = reader.int16(), reader.text()
    leader_id, leader_epoch = reader.int32(), reader.int32()
    if leader_id == 0 and leader_epoch == 0:
        leader = _ZERO_LEADER
    elif leader_id == -1 and leader_epoch == -1:
        leader = _NO_LEADER
    else:
        leader = PartitionLeader(leader_id, leader_epoch)
    reader.skip_tags()
    records = reader.data()
    acquired = _acquired(reader, share_partition)
    reader.skip_tags()
    return PartitionResponse(
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
    reader: FieldReader, where: SharePartition
) -> tuple[tuple[int, int, int], ...]:
    acquired: list[tuple[int, int, int]] = []
    after = -1
    for _ in range(reader.count(ACQUIRED_SIZE)):
        first, last = reader.int64(), reader.int64()
        count = reader.int16()
        reader.skip_tags()
        if not after < first <= last:
            raise ValueError(
                f"acquired ranges of {where} are not ascending: {first} to {last} "
                f"follows {after}"
            )
        after = last
        acquired.append((first, last, count))
    return tuple(acquired)


def _endpoint(reader: FieldReader) -> Endpoint:
    host = reader.text()
    if host is None:
        raise ValueError("the host of a node is null")
    port = reader.int32()
    reader.text()  # its rack
    reader.skip_tags()
    return Endpoint(host, port)


SHARE_FETCH: Final[Api[ShareFetch, ShareFetchResponse]] = Api(
    key=78,
    name="ShareFetch",
    versions=VERSIONS,
    write=_write,
    read=_read,
    since="4.1",
)


def by_topic(
    partitions: Iterable[SharePartition],
) -> dict[TopicId, list[SharePartition]]:
    """Return the partitions of each topic, sorted, as requests list them."""
    topics: dict[TopicId, list[SharePartition]] = {}
    for share_partition in sorted(partitions):
        topics.setdefault(share_partition.topic_id, []).append(share_partition)
    return topics


def batches(schema: ModuleType, ranges: Sequence[Range]) -> tuple[Any, ...]:
    return tuple(
        schema.AcknowledgementBatch(
            first_offset=first, last_offset=last, acknowledge_types=tuple(kinds)
        )
        for first, last, kinds in ranges
    )


def endpoints(nodes: Iterable[Any]) -> Mapping[int, Endpoint]:
    return {node.node_id: Endpoint(node.host, node.port) for node in nodes}
