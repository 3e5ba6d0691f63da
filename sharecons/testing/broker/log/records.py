"""Decoding of single records.

Used only to find an offset by a timestamp, to check timestamps and keys, and to copy
records. All other operations use the headers of batches.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import cramjam

from sharecons.testing.broker.log.batches import (
    HEADER,
    BatchHeader,
    decode_header,
    has_valid_crc,
)

__all__ = [
    "DECOMPRESSORS",
    "RecordContent",
    "RecordHead",
    "batch_contents",
    "decode_heads",
    "decode_records",
    "decompress",
]

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = 16  # the magic, and two versions of 4 bytes


class RecordHead(NamedTuple):
    timestamp: int
    offset: int
    has_key: bool


class RecordContent(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    size: int
    """The size of the whole record in bytes."""


def decompress(batch: bytes, header: BatchHeader) -> bytes:
    """Return the records of a batch, decompressed.

    Raises:
        ValueError: the compression is unknown, or the data are invalid.
    """
    try:
        return DECOMPRESSORS[header.compression](batch[HEADER.size :])
    except (KeyError, cramjam.DecompressionError, zlib.error) as error:
        raise ValueError(f"invalid records: {error!r}") from error


def decode_heads(batch: bytes, header: BatchHeader) -> Iterator[RecordHead]:
    """Yield the heads of a batch's records, in order.

    Raises:
        ValueError: the records are invalid.
    """
    try:
        yield from _decode_heads(decompress(batch, header), header)
    except IndexError as error:
        raise ValueError(f"invalid records: {error!r}") from error


def _decode_heads(body: bytes, header: BatchHeader) -> Iterator[RecordHead]:
    at = 0
    for _ in range(header.record_count):
        length, at = _decode_varint(body, at)
        end = at + length
        # One byte of attributes, which are unused.
        time, at = _decode_varint(body, at + 1)
        offset, at = _decode_varint(body, at)
        key, at = _decode_varint(body, at)
        if length < 0 or end > len(body):
            raise ValueError(f"invalid record length: {length} bytes")
        timestamp = _timestamp(header, time)
        yield RecordHead(timestamp, header.base_offset + offset, key >= 0)
        at = end


def decode_records(body: bytes, header: BatchHeader) -> Iterator[RecordContent]:
    """Yield the records of a decompressed batch.

    Raises:
        ValueError: the records are invalid.
    """
    try:
        yield from _decode_records(body, header)
    except IndexError as error:
        raise ValueError(f"invalid records: {error!r}") from error


def batch_contents(batch: bytes) -> Iterator[RecordContent]:
    """Yield the records of a batch.

    Raises:
        ValueError: the checksum is wrong, or the records are invalid.
    """
    header = decode_header(batch)
    if not has_valid_crc(batch, header):
        raise ValueError("the checksum is wrong")
    return decode_records(decompress(batch, header), header)


def _decode_records(body: bytes, header: BatchHeader) -> Iterator[RecordContent]:
    begin = 0
    for _ in range(header.record_count):
        length, at = _decode_varint(body, begin)
        end = at + length
        if length < 0 or end > len(body):
            raise ValueError(f"invalid record length: {length} bytes")
        time, at = _decode_varint(body, at + 1)
        offset, at = _decode_varint(body, at)
        key, at = _decode_bytes(body, at)
        value, at = _decode_bytes(body, at)
        yield RecordContent(
            offset=header.base_offset + offset,
            timestamp=_timestamp(header, time),
            key=key,
            value=value,
            headers=_decode_headers(body, at),
            size=end - begin,
        )
        begin = end


def _decode_headers(body: bytes, at: int) -> tuple[tuple[str, bytes | None], ...]:
    count, at = _decode_varint(body, at)
    headers = []
    for _ in range(count):
        name, at = _decode_bytes(body, at)
        value, at = _decode_bytes(body, at)
        headers.append(((name or b"").decode(errors="replace"), value))
    return tuple(headers)


def _timestamp(header: BatchHeader, delta: int) -> int:
    if header.has_log_append_time:
        return header.max_timestamp
    return header.first_timestamp + delta


def _decode_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Decode nullable bytes after their length; return them and their end."""
    length, at = _decode_varint(data, at)
    return (None, at) if length < 0 else (data[at : at + length], at + length)


def _decode_varint(data: bytes, at: int) -> tuple[int, int]:
    """Decode a zigzag number; return it and its end."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def _decompress_gzip(data: bytes) -> bytes:
    return zlib.decompress(data, wbits=31)


def _decompress_snappy(data: bytes) -> bytes:
    """Decode both forms: Java frames blocks (xerial), librdkafka writes one block."""
    if not data.startswith(XERIAL_MAGIC):
        return bytes(cramjam.snappy.decompress_raw(data))
    blocks = []
    at = XERIAL_HEADER
    while at < len(data):
        start = at + 4
        at = start + int.from_bytes(data[at:start], "big")
        blocks.append(bytes(cramjam.snappy.decompress_raw(data[start:at])))
    return b"".join(blocks)


DECOMPRESSORS: Final[Mapping[int, Callable[[bytes], bytes]]] = {
    0: bytes,
    1: _decompress_gzip,
    2: _decompress_snappy,
    3: lambda data: bytes(cramjam.lz4.decompress(data)),
    4: lambda data: bytes(cramjam.zstd.decompress(data)),
}
