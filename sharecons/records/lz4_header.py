"""The checksum in the header of an LZ4 frame, which format 0 has wrong (KAFKA-3160).

Clients computed it over the frame's magic number as well as over its descriptor. Kafka
ignores this byte in messages of format 0; a strict decoder rejects the frame.

The header (LZ4 frame format 1.6): magic number (4 bytes), descriptor: flags, block
size, content size (8 bytes, if bit 3 of the flags is set), dictionary id (4 bytes, if
bit 0 is set); then the checksum: the second byte of the descriptor's xxHash-32.
"""

from typing import Final

__all__ = ["with_header_checksum"]

_DESCRIPTOR_AT: Final = 4
_HAS_CONTENT_SIZE: Final = 0x08
_HAS_DICTIONARY: Final = 0x01

_MASK: Final = 0xFFFFFFFF
_PRIME_1: Final = 0x9E3779B1
_PRIME_2: Final = 0x85EBCA77
_PRIME_3: Final = 0xC2B2AE3D
_PRIME_4: Final = 0x27D4EB2F
_PRIME_5: Final = 0x165667B1


def with_header_checksum(frame: bytes) -> bytes:
    """Return the frame with a correct checksum in its header.

    Data that is too short is returned unchanged; decompressing it fails.
    """
    if len(frame) <= _DESCRIPTOR_AT:
        return frame
    flags = frame[_DESCRIPTOR_AT]
    at = _DESCRIPTOR_AT + 2
    at += 8 if flags & _HAS_CONTENT_SIZE else 0
    at += 4 if flags & _HAS_DICTIONARY else 0
    if len(frame) <= at:
        return frame
    checksum = _xxhash32(frame[_DESCRIPTOR_AT:at]) >> 8 & 0xFF
    return frame[:at] + bytes([checksum]) + frame[at + 1 :]


def _xxhash32(data: bytes) -> int:
    """Return the xxHash-32, with seed 0, of fewer than 16 bytes."""
    number = (_PRIME_5 + len(data)) & _MASK
    words = len(data) & ~3
    for at in range(0, words, 4):
        number += int.from_bytes(data[at : at + 4], "little") * _PRIME_3
        number = _rotated(number & _MASK, 17) * _PRIME_4 & _MASK
    for byte in data[words:]:
        number = _rotated(number + byte * _PRIME_5 & _MASK, 11) * _PRIME_1 & _MASK
    number = (number ^ number >> 15) * _PRIME_2 & _MASK
    number = (number ^ number >> 13) * _PRIME_3 & _MASK
    return number ^ number >> 16


def _rotated(number: int, bits: int) -> int:
    """Rotate 32 bits to the left."""
    return (number << bits | number >> 32 - bits) & _MASK
