"""Fetch (1): reads the log of partitions by offset.

Versions 13 to 17. Since 13, topics are identified by id: by name, a topic that was
deleted and created again would be mistaken for the old one. All brokers with share
groups support 17. This client uses no fetch session (KIP-227): sessions save resending
thousands of partitions, and it fetches only a few.

Encoded and decoded without kio (see `codec.fields`); tests compare it with kio.
"""

import struct
from collections.abc import Mapping
from struct import Struct
from typing import Final

from sharecons.errors import ProtocolError
from sharecons.protocol.log_reader.messages import (
    Fetch,
    Fetched,
    FetchedPartition,
    FetchPosition,
)
from sharecons.protocol.partitions import SharePartition
from sharecons.wire.codec.api import Api, Frame
from sharecons.wire.codec.fields import (
    NO_TAGS,
    FieldReader,
    milliseconds,
    text_field,
    varint,
)

__all__ = ["FETCH"]

VERSIONS: Final = range(13, 18)
NO_REPLICA_ID_SINCE: Final = 15

CONSUMER: Final = b"\xff\xff\xff\xff"  # a ReplicaId of -1
NO_SESSION: Final = Struct(">ii").pack(0, -1)  # SessionId, SessionEpoch
NO_FORGOTTEN_TOPICS: Final = varint(1)
NO_RACK: Final = text_field("")

# MaxWaitMs, MinBytes, MaxBytes, IsolationLevel
_NUMBERS: Final = Struct(">iiib")
# Partition, CurrentLeaderEpoch, FetchOffset, LastFetchedEpoch, LogStartOffset,
# PartitionMaxBytes
_PARTITION: Final = Struct(">iiqiqi")

# PartitionIndex, ErrorCode, HighWatermark, LastStableOffset, LogStartOffset
_FETCHED: Final = Struct(">ihqqq")
# ProducerId, FirstOffset
_ABORTED: Final = Struct(">qq")

# Minimum bytes of an array's element: its fixed-size fields, and 1 for each other one.
TOPIC_SIZE: Final = 18
PARTITION_SIZE: Final = _FETCHED.size + 7
ABORTED_SIZE: Final = _ABORTED.size + 1


def _write(request: Fetch, version: int) -> bytes:
    try:
        return b"".join(_encode(request, version))
    except (struct.error, ValueError) as error:
        raise ProtocolError(f"cannot write a Fetch: {error}") from error


def _encode(request: Fetch, version: int) -> list[bytes]:
    parts = [] if version >= NO_REPLICA_ID_SINCE else [CONSUMER]
    max_wait = milliseconds(request.max_wait)
    parts.append(
        _NUMBERS.pack(max_wait, request.min_bytes, request.max_bytes, request.committed)
    )
    parts.append(NO_SESSION)
    _write_partitions(parts, request.partitions)
    parts += (NO_FORGOTTEN_TOPICS, NO_RACK, NO_TAGS)
    return parts


def _write_partitions(
    parts: list[bytes], partitions: Mapping[SharePartition, FetchPosition]
) -> None:
    # Keep the order within each topic: the broker fills the response in this order.
    topics: dict[bytes, list[SharePartition]] = {}
    for each in partitions:
        topics.setdefault(each.topic_id, []).append(each)
    parts.append(varint(len(topics) + 1))
    for topic_id, topic_partitions in topics.items():
        parts += (topic_id, varint(len(topic_partitions) + 1))
        for each in topic_partitions:
            epoch, offset, max_bytes = partitions[each]
            written = _PARTITION.pack(each.partition, epoch, offset, -1, -1, max_bytes)
            parts += (written, NO_TAGS)
        parts.append(NO_TAGS)


def _read(frame: Frame, offset: int, version: int) -> Fetched:
    view = memoryview(frame)
    reader = FieldReader(view, offset)
    try:
        response = _decode(view, reader)
    except (struct.error, ValueError, IndexError) as error:
        raise ProtocolError(f"invalid Fetch response: {error}") from error
    if reader.position != len(view):
        extra = len(view) - reader.position
        raise ProtocolError(f"invalid Fetch response: {extra} bytes after its end")
    return response


def _decode(frame: memoryview, reader: FieldReader) -> Fetched:
    throttle = reader.int32()
    error = reader.int16()
    reader.int32()  # the session's id
    partitions: list[FetchedPartition] = []
    for _ in range(reader.count(TOPIC_SIZE)):
        topic_id = reader.topic_id()
        partitions += [
            _partition(frame, reader, topic_id)
            for _ in range(reader.count(PARTITION_SIZE))
        ]
        reader.skip_tags()
    reader.skip_tags()  # brokers' addresses, which come from Metadata instead
    return Fetched(
        error=error, partitions=tuple(partitions), throttle=max(0.0, throttle / 1000)
    )


def _partition(
    frame: memoryview, reader: FieldReader, topic_id: bytes
) -> FetchedPartition:
    index, error, high_watermark, _, log_start_offset = _FETCHED.unpack_from(
        frame, reader.position
    )
    reader.position += _FETCHED.size
    aborted = _aborted(frame, reader)
    reader.int32()  # the preferred read replica: only for consumers with a rack
    records = memoryview(reader.data())
    reader.skip_tags()
    return FetchedPartition(
        share_partition=SharePartition(topic_id, index),
        error=error,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        aborted=aborted,
        records=records,
    )


def _aborted(frame: memoryview, reader: FieldReader) -> tuple[tuple[int, int], ...]:
    if frame[reader.position] == 0:  # null if the request is not read_committed
        reader.position += 1
        return ()
    aborted: list[tuple[int, int]] = []
    for _ in range(reader.count(ABORTED_SIZE)):
        aborted.append(_ABORTED.unpack_from(frame, reader.position))
        reader.position += _ABORTED.size
        reader.skip_tags()
    return tuple(aborted)


FETCH: Final[Api[Fetch, Fetched]] = Api(
    key=1, name="Fetch", versions=VERSIONS, write=_write, read=_read
)
