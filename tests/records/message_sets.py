"""Messages of formats 0 and 1 made by hand, valid or invalid."""

import struct
import zlib
from collections.abc import Sequence

from sharecons.records.compression import Codec, compress

__all__ = ["message", "wrapper"]

APPEND_TIME = 0x08
LZ4_CHECKSUM_AT = 6
"""The position of the checksum in the header of a frame as cramjam writes it."""


def message(
    offset: int,
    value: bytes | None,
    key: bytes | None = None,
    *,
    magic: int = 1,
    timestamp: int = 0,
    attributes: int = 0,
) -> bytes:
    fields = struct.pack(">bb", magic, attributes)
    if magic:
        fields += struct.pack(">q", timestamp)
    fields += _sized(key) + _sized(value)
    crc = struct.pack(">I", zlib.crc32(fields))
    return struct.pack(">qi", offset, len(crc + fields)) + crc + fields


def wrapper(
    offset: int,
    messages: Sequence[bytes],
    codec: Codec = Codec.GZIP,
    *,
    magic: int = 1,
    timestamp: int = 0,
    append_time: bool = False,
) -> bytes:
    """Return a message whose value is the compressed messages."""
    value = compress(codec, b"".join(messages))
    if codec is Codec.LZ4 and not magic:
        value = with_wrong_header_checksum(value)
    attributes = codec | (APPEND_TIME if append_time else 0)
    return message(
        offset, value, magic=magic, timestamp=timestamp, attributes=attributes
    )


def with_wrong_header_checksum(frame: bytes) -> bytes:
    """Return an LZ4 frame with a wrong header checksum, as in KAFKA-3160."""
    at = LZ4_CHECKSUM_AT
    return frame[:at] + bytes([frame[at] ^ 0x55]) + frame[at + 1 :]


def _sized(content: bytes | None) -> bytes:
    if content is None:
        return struct.pack(">i", -1)
    return struct.pack(">i", len(content)) + content
