"""Encoding of record batches: records that a test produces, and dead letters.

Batches have magic 2 ("Message sets" and "Record batches" in Kafka's protocol guide) and
are uncompressed; the log sets offsets and leader epochs.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from crc32c import crc32c

__all__ = ["Header", "NewRecord", "batch_of", "batches_of", "fitting"]

Header: TypeAlias = tuple[str, bytes | None]

MAGIC: Final = 2
BEFORE_CRC: Final = struct.Struct(">qiib")  # offset, length, leader epoch, magic
AFTER_CRC: Final = struct.Struct(">hiqqqhii")
NOBODY: Final = (-1, -1, -1)  # producer id, producer epoch, first sequence
HEADER: Final = 61  # bytes of a batch
VARINT: Final = 5  # bytes of a 32-bit number at most
VARINTS: Final = 2 + 5 * VARINT  # attributes, timestamp delta 0, five numbers
SIZE: Final = 256 * 1024  # bytes of a batch, about; max.message.bytes is 1 MiB


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to write."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[Header] = ()


def batches_of(
    records: Iterable[NewRecord],
    timestamp: int,
    most: int | None = None,
    max_bytes: int = SIZE * 4,
) -> Iterator[bytes]:
    """Yield records in batches of about 256 KiB.

    Args:
        records: the records to write, in order.
        timestamp: the timestamp of all records, in milliseconds.
        most: the maximum number of records in a batch.
        max_bytes: the maximum size of a batch with several records; a larger record
            gets its own batch.
    """
    waiting: list[NewRecord] = []
    size = HEADER
    for record in records:
        length = _longest(record)
        if waiting and size + length > max_bytes:
            yield batch_of(waiting, timestamp)
            waiting, size = [], HEADER
        waiting.append(record)
        size += length
        if size >= SIZE or len(waiting) == most:
            yield batch_of(waiting, timestamp)
            waiting, size = [], HEADER
    if waiting:
        yield batch_of(waiting, timestamp)


def fitting(records: Iterable[NewRecord], timestamp: int, most: int) -> Iterator[bytes]:
    """Yield batches of at most `most` bytes, or of one larger record."""
    waiting: list[NewRecord] = []
    size = HEADER
    for record in records:
        length = len(_record(len(waiting), record))
        if waiting and size + length > most:
            yield batch_of(waiting, timestamp)
            waiting, size = [], HEADER
        waiting.append(record)
        size += length
    if waiting:
        yield batch_of(waiting, timestamp)


def batch_of(records: Sequence[NewRecord], timestamp: int) -> bytes:
    """Encode a batch; `timestamp` is that of all records, in milliseconds."""
    body = b"".join(_record(index, record) for index, record in enumerate(records))
    last = len(records) - 1
    checked = (
        AFTER_CRC.pack(0, last, timestamp, timestamp, *NOBODY, len(records)) + body
    )
    length = len(checked) + 9  # with leader epoch, magic and CRC
    head = BEFORE_CRC.pack(0, length, -1, MAGIC)
    return head + struct.pack(">I", crc32c(checked)) + checked


def _longest(record: NewRecord) -> int:
    """Return the maximum size in bytes that the record may have in a batch."""
    size = VARINTS + len(record.value or b"") + len(record.key or b"")
    for name, value in record.headers:
        size += 2 * VARINT + len(name.encode()) + len(value or b"")
    return size


def _record(index: int, record: NewRecord) -> bytes:
    headers = (_sized(name.encode()) + _sized(value) for name, value in record.headers)
    content = b"".join(
        (
            b"\0",  # attributes: unused
            _varint(0),  # milliseconds after the batch's first timestamp
            _varint(index),
            _sized(record.key),
            _sized(record.value),
            _varint(len(record.headers)),
            *headers,
        )
    )
    return _varint(len(content)) + content


def _sized(content: bytes | None) -> bytes:
    if content is None:
        return _varint(-1)
    return _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Encode a number of up to 64 bits: zigzag, seven bits per byte."""
    left = (number << 1) ^ (number >> 63)
    written = bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)
