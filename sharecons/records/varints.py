"""Kafka's varints: seven bits a byte, lowest first, the sign moved to bit 0 (zig-zag).

An encoded number n means n/2 if it is even and -(n+1)/2 if it is odd. `read_varint`
returns n itself: a caller that reads a length only needs to check that n is even.
"""

from typing import Final

from sharecons.records.errors import DamagedError

__all__ = ["VARINT", "VARLONG", "append_varint", "read_length", "read_varint"]

VARINT: Final = 32
VARLONG: Final = 64


def read_varint(data: bytes, position: int, bits: int) -> tuple[int, int]:
    """Return a number of at most `bits` bits, still encoded, and the next position.

    Raises:
        DamagedError: the number has more bits.
        IndexError: the data ends within it.
    """
    number = 0
    shift = 0
    while shift < bits:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >> bits:
                break
            return number, position
        shift += 7
    raise DamagedError(f"a number has more than {bits} bits")


def read_length(data: bytes, position: int) -> tuple[int, int]:
    """Return a length that must not be null, and the next position."""
    number = data[position]
    if number < 0x80:
        position += 1
    else:
        number, position = read_varint(data, position, VARINT)
    if number & 1:
        raise DamagedError("a length is negative")
    return number >> 1, position


def append_varint(buffer: bytearray, value: int) -> None:
    number = value << 1 if value >= 0 else (~value << 1) | 1
    while number >= 0x80:
        buffer.append(number & 0x7F | 0x80)
        number >>= 7
    buffer.append(number)
