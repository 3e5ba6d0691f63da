"""The header of record batches of format 2 (KIP-98, "Message Format").

A batch:

    base offset            int64
    batch length           int32    number of bytes after this field
    partition leader epoch int32
    magic                  int8     2
    crc                    uint32   CRC-32C of the bytes after this field
    attributes             int16
    last offset delta      int32    kept when compaction removes the last records
    base timestamp         int64
    max timestamp          int64
    producer id            int64
    producer epoch         int16
    base sequence          int32
    record count           int32
    records                         compressed as a whole, if at all

The checksum does not cover the base offset and the length: the broker sets them after
the producer computed it. Formats 0 and 1 (`message_sets`) have offset, length and magic
at the same positions, so a reader can skip batches of any format.
"""

from struct import Struct
from typing import Final, final

from mypy_extensions import i64

__all__ = [
    "APPEND_TIME",
    "CODEC_MASK",
    "CONTROL",
    "CRC_START",
    "HEADER",
    "HEADER_SIZE",
    "LAST_OFFSET",
    "LENGTH_END",
    "MAGIC",
    "PREFIX_SIZE",
    "SMALLEST_LENGTH",
    "TRANSACTIONAL",
    "Header",
    "int16_at",
    "int32_at",
    "int64_at",
    "uint32_at",
]

MAGIC: Final = 2

PREFIX_SIZE: Final = 17
"""Size of base offset, length and magic, which all formats have in common."""

HEADER: Final = Struct(">qiibIHiqqqhii")
HEADER_SIZE: Final = 61
LENGTH_END: Final = 12
"""The position from which the batch length counts."""
CRC_START: Final = 21
"""The position from which the checksum is computed."""
SMALLEST_LENGTH: Final = 14
"""The length of a message of format 0 with null key and value; smaller is invalid."""

CODEC_MASK: Final = 0x07
APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20


@final
class Header:
    """The header of the batch from `position` to `end` (exclusive).

    The batch can have another format or be truncated: check `magic` and `end`. Only
    `base_offset`, `length` and `magic` are valid in all formats.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_timestamp",
        "count",
        "crc",
        "end",
        "last_offset",
        "length",
        "magic",
        "max_timestamp",
        "position",
    )

    def __init__(self, payload: bytes | memoryview, position: int) -> None:
        raw, at = b"", position
        if isinstance(payload, bytes):
            raw = payload
        else:
            raw, at = payload[position : position + HEADER_SIZE].tobytes(), 0
        if len(raw) - at < HEADER_SIZE:
            raw, at = raw[at:].ljust(HEADER_SIZE, b"\0"), 0
        # The producer's id, epoch and sequence are not needed.
        self.base_offset = int64_at(raw, at)
        self.length = int32_at(raw, at + 8)
        self.magic = raw[at + 16]
        self.crc = uint32_at(raw, at + 17)
        self.attributes = int16_at(raw, at + 21)
        self.last_offset = self.base_offset + int32_at(raw, at + 23)
        self.base_timestamp = int64_at(raw, at + 27)
        self.max_timestamp = int64_at(raw, at + 35)
        self.count = int32_at(raw, at + 57)
        self.position = position
        self.end = position + LENGTH_END + self.length


# Compiled, these read a number without creating a Python object. They raise IndexError
# if the bytes end before the number does.


def int16_at(data: bytes, at: i64) -> int:
    a: i64 = data[at]
    b: i64 = data[at + 1]
    number = a << 8 | b
    return number - ((number & 0x8000) << 1)


def uint32_at(data: bytes, at: i64) -> int:
    a: i64 = data[at]
    b: i64 = data[at + 1]
    c: i64 = data[at + 2]
    d: i64 = data[at + 3]
    return a << 24 | b << 16 | c << 8 | d


def int32_at(data: bytes, at: i64) -> int:
    number: i64 = uint32_at(data, at)
    return number - ((number & 0x80000000) << 1)


def int64_at(data: bytes, at: i64) -> int:
    high: i64 = int32_at(data, at)
    low: i64 = uint32_at(data, at + 4)
    return high << 32 | low


LAST_OFFSET: Final = (1 << 63) - 1
