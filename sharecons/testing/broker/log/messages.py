"""Messages of formats 0 and 1, which only logs of upgraded clusters contain.

A message: offset 8, size of the rest 4, CRC-32 4, magic 1, attributes 1, timestamp 8
(format 1), then key and value, each after its length of 4 bytes. The value of a
message with a codec is a compressed sequence of messages, and its offset is the offset
of the last one; in format 1, their own offsets are relative to each other.

Kafka 4 still reads them (`AbstractLegacyRecordBatch`), but rejects them in Produce.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

import cramjam

from sharecons.testing.broker.log.batches import COMPRESSION, LOG_APPEND_TIME, MAGIC
from sharecons.testing.broker.log.records import (
    DECOMPRESSORS,
    RecordContent,
    batch_contents,
)

__all__ = ["contents_of", "decode_messages", "is_message"]

HEAD: Final = struct.Struct(">qiIbb")
SIZE_END: Final = 12
CRC_END: Final = 16
MAGIC_AT: Final = 16
LZ4: Final = 3
ZSTD: Final = 4

LZ4_BLOCK: Final = 4 << 20  # the maximum
LZ4_HEADER: Final = 7  # as Kafka's clients write it: without optional fields
LZ4_FLAGS_AT: Final = 4
LZ4_CHECKSUMS: Final = 0x10  # of 4 bytes, after each block
LZ4_RAW: Final = 1 << 31  # the block is not compressed


class _Message(NamedTuple):
    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    end: int


def is_message(data: bytes) -> bool:
    """Return whether this is a message of format 0 or 1, and not a batch."""
    return data[MAGIC_AT] < MAGIC


def contents_of(data: bytes) -> Iterator[RecordContent]:
    """Yield the records of a batch, or of a message of format 0 or 1.

    Raises:
        ValueError: they are invalid.
    """
    return decode_messages(data) if is_message(data) else batch_contents(data)


def decode_messages(data: bytes) -> Iterator[RecordContent]:
    """Yield the records of one message, which can be compressed.

    Raises:
        ValueError: a message is invalid.
    """
    try:
        wrapper = _decode(data, 0)
        inner = _inner(wrapper) if wrapper.attributes & COMPRESSION else [wrapper]
    except (struct.error, IndexError, KeyError, zlib.error) as error:
        raise ValueError(f"invalid messages: {error!r}") from error
    except cramjam.DecompressionError as error:
        raise ValueError(f"invalid messages: {error}") from error
    base = wrapper.offset - inner[-1].offset if wrapper.magic else 0
    is_append_time = wrapper.magic and wrapper.attributes & LOG_APPEND_TIME
    for each in inner:
        yield RecordContent(
            offset=base + each.offset,
            timestamp=wrapper.timestamp if is_append_time else each.timestamp,
            key=each.key,
            value=each.value,
            headers=(),
            size=len(each.key or b"") + len(each.value or b""),
        )


def _inner(wrapper: _Message) -> list[_Message]:
    codec = wrapper.attributes & COMPRESSION
    if wrapper.value is None or codec == ZSTD:
        raise ValueError("a compressed message is invalid")
    if codec == LZ4:
        data = _decompress_lz4(wrapper.value)
    else:
        data = DECOMPRESSORS[codec](wrapper.value)
    inner = []
    at = 0
    while at < len(data):
        inner.append(_decode(data, at))
        at = inner[-1].end
    if not inner or any(each.attributes & COMPRESSION for each in inner):
        raise ValueError("a compressed message holds none, or compressed ones")
    return inner


def _decode(data: bytes, at: int) -> _Message:
    offset, size, crc, magic, attributes = HEAD.unpack_from(data, at)
    end = at + SIZE_END + size
    if end > len(data) or zlib.crc32(data[at + CRC_END : end]) != crc:
        raise ValueError(f"the message at offset {offset} is damaged")
    at += HEAD.size
    timestamp = -1
    if magic:
        (timestamp,) = struct.unpack_from(">q", data, at)
        at += 8
    key, at = _decode_bytes(data, at)
    value, at = _decode_bytes(data, at)
    return _Message(offset, magic, attributes, timestamp, key, value, end)


def _decode_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = struct.unpack_from(">i", data, at)
    at += 4
    return (None, at) if size < 0 else (data[at : at + size], at + size)


def _decompress_lz4(frame: bytes) -> bytes:
    """Decompress a frame block by block: its header's checksum can be wrong.

    In format 0 it is (KAFKA-3160), and Kafka ignores it.
    """
    buffer = bytearray(LZ4_BLOCK)
    checksum_size = 4 if frame[LZ4_FLAGS_AT] & LZ4_CHECKSUMS else 0
    blocks = []
    at = LZ4_HEADER
    while size := int.from_bytes(frame[at : at + 4], "little"):
        block = frame[at + 4 : at + 4 + (size & ~LZ4_RAW)]
        at += 4 + len(block) + checksum_size
        if size & LZ4_RAW:
            blocks.append(block)
        else:
            length = cramjam.lz4.decompress_block_into(block, buffer)
            blocks.append(bytes(buffer[:length]))
    return b"".join(blocks)
