"""Kafka's numbers, big endian, out of bytes.

Compiled, one is read without an object of Python's: a batch's header takes 900
instructions, and took 2,700 through `struct`, which counts where records come alone. In
plain Python `struct` would be quicker, but these are few numbers an answer.

All raise IndexError where there is no such number.
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
