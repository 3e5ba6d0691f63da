"""Readers of Kafka's big-endian integers.

Compiled, they read a number without creating a Python object: a batch's header takes
900 instructions, but 2,700 with `struct`, which matters when batches hold one record.
In plain Python `struct` would be faster, but a response contains few of these numbers.

All functions raise IndexError if the bytes end before the number does.
"""

from typing import Final

from mypy_extensions import i64

__all__ = ["int16_at", "int32_at", "int64_at", "uint32_at"]

MASK: Final[i64] = 0xFFFFFFFF


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
