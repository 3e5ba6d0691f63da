"""Encodes records as one batch of format 2 (see `batch_header`, `record_decoder`).

Used by tests, dead letters and the embedded broker. It is not optimized for speed.
"""

from collections.abc import Sequence
from typing import NamedTuple

from crc32c import crc32c

from sharecons._record import Headers
from sharecons.records.batch_header import (
    APPEND_TIME,
    CONTROL,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    TRANSACTIONAL,
)
from sharecons.records.compression import Codec, compress
from sharecons.records.varints import append_varint

__all__ = ["NewRecord", "encode"]


class NewRecord(NamedTuple):
    """A record to encode.

    Attributes:
        timestamp: milliseconds since the epoch.
        offset_delta: its offset minus the batch's base offset; None for the one after
            the previous record.
    """

    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    timestamp: int = 0
    offset_delta: int | None = None


def encode(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    last_offset_delta: int | None = None,
    base_timestamp: int | None = None,
    append_timestamp: int | None = None,
    compression: Codec = Codec.NONE,
    transactional: bool = False,
    control: bool = False,
    partition_leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """Encode the records as one batch.

    Args:
        records: ascending by offset delta; can be empty, as after compaction.
        last_offset_delta: by default the last record's; larger if compaction removed
            later records.
        base_timestamp: by default the first record's.
        append_timestamp: when the broker appended the batch, for topics with
            LogAppendTime.
    """
    first_timestamp = records[0].timestamp if records else -1
    if base_timestamp is None:
        base_timestamp = first_timestamp
    if append_timestamp is None:
        max_timestamp = max((record.timestamp for record in records), default=-1)
    else:
        max_timestamp = append_timestamp
    body, last_delta = _encode_records(records, base_timestamp)
    body = compress(compression, body)
    attributes = (
        compression
        | (0 if append_timestamp is None else APPEND_TIME)
        | (TRANSACTIONAL if transactional else 0)
        | (CONTROL if control else 0)
    )
    batch = bytearray(HEADER_SIZE)
    batch += body
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LENGTH_END,
        partition_leader_epoch,
        MAGIC,
        0,
        attributes,
        last_delta if last_offset_delta is None else last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    batch[CRC_START - 4 : CRC_START] = _checksum(batch).to_bytes(4, "big")
    return bytes(batch)


def _checksum(batch: bytearray) -> int:
    return crc32c(memoryview(batch)[CRC_START:])


def _encode_records(
    records: Sequence[NewRecord], base_timestamp: int
) -> tuple[bytes, int]:
    body = bytearray()
    delta = -1
    for record in records:
        delta = delta + 1 if record.offset_delta is None else record.offset_delta
        encoded = bytearray(1)  # attributes: none is in use
        append_varint(encoded, record.timestamp - base_timestamp)
        append_varint(encoded, delta)
        _append_bytes(encoded, record.key)
        _append_bytes(encoded, record.value)
        _append_headers(encoded, record.headers)
        append_varint(body, len(encoded))
        body += encoded
    return bytes(body), max(delta, 0)


def _append_headers(buffer: bytearray, headers: Headers) -> None:
    append_varint(buffer, len(headers))
    for name, value in headers:
        # The inverse of the decoder: names that are not UTF-8 keep their bytes.
        _append_bytes(buffer, name.encode("utf-8", "surrogateescape"))
        _append_bytes(buffer, value)


def _append_bytes(buffer: bytearray, value: bytes | None) -> None:
    if value is None:
        append_varint(buffer, -1)
    else:
        append_varint(buffer, len(value))
        buffer += value
