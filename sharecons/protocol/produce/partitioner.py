"""Chooses the partition of a record, as Kafka's own producer does.

Records with equal keys go to the same partition, even if a Java producer writes some of
them: both hash the key with MurmurHash2 (32 bits, seed 0x9747b28c). Records without a
key go to one partition until a batch is taken from it, and then to the next.
"""

from typing import Final

__all__ = ["murmur2", "partition_of_key"]

SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
MASK: Final = 0xFFFFFFFF
POSITIVE: Final = 0x7FFFFFFF


def partition_of_key(key: bytes, partitions: int) -> int:
    """Return the partition of a key in a topic with this number of partitions."""
    return (murmur2(key) & POSITIVE) % partitions


def murmur2(data: bytes) -> int:
    """Return the MurmurHash2 of some bytes, as an unsigned number of 32 bits."""
    length = len(data)
    result = SEED ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        part = int.from_bytes(data[position : position + 4], "little")
        part = part * MULTIPLIER & MASK
        part ^= part >> 24
        part = part * MULTIPLIER & MASK
        result = (result * MULTIPLIER & MASK) ^ part
    if rest := data[whole:]:
        result ^= int.from_bytes(rest, "little")
        result = result * MULTIPLIER & MASK
    result ^= result >> 13
    result = result * MULTIPLIER & MASK
    return result ^ (result >> 15)
