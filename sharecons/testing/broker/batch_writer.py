"""Encoding of record batches: records that a test produces, and dead letters.

Batches have magic 2 ("Message sets" and "Record batches" in Kafka's protocol guide) and
are uncompressed; the log sets offsets and leader epochs.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from crc32c import crc32c

__all__ = [
    "Header",
    "NewRecord",
    "encode_batch",
    "encode_batches",
    "encode_batches_within",
]

Header: TypeAlias = tuple[str, bytes | None]

MAGIC: Final = 2
BEFORE_CRC: Final = struct.Struct(">qiib")  # offset, length, leader epoch, magic
AFTER_CRC: Final = struct.Struct(">hiqqqhii")
NO_PRODUCER: Final = (-1, -1, -1)  # producer id, producer epoch, first sequence
HEADER_SIZE: Final = 61  # bytes of a batch
VARINT_SIZE: Final = 5  # bytes of a 32-bit number at most
VARINTS_SIZE: Final = 2 + 5 * VARINT_SIZE  # attributes, timestamp delta 0, five numbers
TARGET_SIZE: Final = 256 * 1024  # bytes of a batch, about; max.message.bytes is 1 MiB


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to write."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[Header] = ()


def encode_batches(
    records: Iterable[NewRecord],
    timestamp: int,
    max_records: int | None = None,
    max_bytes: int = TARGET_SIZE * 4,
) -> Iterator[bytes]:
    """Yield records in batches of about 256 KiB.

    Args:
        records: the records to write, in order.
        timestamp: the timestamp of all records, in milliseconds.
        max_records: the maximum number of records in a batch.
        max_bytes: the maximum size of a batch with several records; a larger record
            gets its own batch.
    """
    pending: list[NewRecord] = []
    size = HEADER_SIZE
    for record in records:
        length = _max_size(record)
        if pending and size + length > max_bytes:
            yield encode_batch(pending, timestamp)
            pending, size = [], HEADER_SIZE
        pending.append(record)
        size += length
        if size >= TARGET_SIZE or len(pending) == max_records:
            yield encode_batch(pending, timestamp)
            pending, size = [], HEADER_SIZE
    if pending:
        yield encode_batch(pending, timestamp)


def encode_batches_within(
    records: Iterable[NewRecord], timestamp: int, max_bytes: int
) -> Iterator[bytes]:
    """Yield batches of at most `max_bytes` bytes, or of one larger record."""
    pending: list[NewRecord] = []
    size = HEADER_SIZE
    for record in records:
        length = len(_encode_record(len(pending), record))
        if pending and size + length > max_bytes:
            yield encode_batch(pending, timestamp)
            pending, size = [], HEADER_SIZE
        pending.append(record)
        size += length
    if pending:
        yield encode_batch(pending, timestamp)


def encode_batch(records: Sequence[NewRecord], timestamp: int) -> bytes:
    """Encode a batch; `timestamp` applies to all records, in milliseconds."""
    body = b"".join(
        _encode_record(index, record) for index, record in enumerate(records)
    )
    last = len(records) - 1
    checked = (
        AFTER_CRC.pack(0, last, timestamp, timestamp, *NO_PRODUCER, len(records)) + body
    )
    length = len(checked) + 9  # with leader epoch, magic and CRC
    head = BEFORE_CRC.pack(0, length, -1, MAGIC)
    return head + struct.pack(">I", crc32c(checked)) + checked


def _max_size(record: NewRecord) -> int:
    """Return the maximum size in bytes that the record can have in a batch."""
    size = VARINTS_SIZE + len(record.value or b"") + len(record.key or b"")
    for name, value in record.headers:
        size += 2 * VARINT_SIZE + len(name.encode()) + len(value or b"")
    return size


def _encode_record(index: int, record: NewRecord) -> bytes:
    headers = (
        _with_length(name.encode()) + _with_length(value)
        for name, value in record.headers
    )
    content = b"".join(
        (
            b"\0",  # attributes: unused
            _encode_varint(0),  # milliseconds after the batch's first timestamp
            _encode_varint(index),
            _with_length(record.key),
            _with_length(record.value),
            _encode_varint(len(record.headers)),
            *headers,
        )
    )
    return _encode_varint(len(content)) + content


def _with_length(content: bytes | None) -> bytes:
    if content is None:
        return _encode_varint(-1)
    return _encode_varint(len(content)) + content


def _encode_varint(number: int) -> bytes:
    """Encode a number of up to 64 bits: zigzag, seven bits per byte."""
    left = (number << 1) ^ (number >> 63)
    written = bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)
