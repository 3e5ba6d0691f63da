"""Distinct JSON values that compress about as well as typical messages."""

import json
import random
from collections.abc import Sequence
from typing import Final

__all__ = [
    "TIMESTAMP_LENGTH",
    "block_size",
    "json_value",
    "message_blocks",
    "timestamped",
]

TIMESTAMP_LENGTH: Final = (
    19  # digits of nanoseconds since the epoch, until the year 2286
)
SEED: Final = 932
DISTINCT_BYTES: Final = 4_000_000  # bytes of distinct values, then repeated
# Consecutive records for one partition: more than a small producer batch holds, and few
# enough that each of 500 partitions gets several blocks.
MAX_BLOCK: Final = 200
CITIES: Final = ("Lisbon", "Nairobi", "Osaka", "Quito", "Riga", "Tunis", "Yerevan")
STATES: Final = ("new", "paid", "packed", "sent", "returned")


def json_value(rng: random.Random, size: int) -> bytes:
    """Return lines of JSON of exactly `size` bytes; the last line is cut off.

    lz4 compresses them to between a half and a third.
    """
    lines = bytearray()
    while len(lines) < size:
        lines += json.dumps(_order(rng), separators=(",", ":")).encode() + b"\n"
    return bytes(lines[:size])


def block_size(size: int) -> int:
    """Return how many consecutive records a partition gets, by the size of a value."""
    return max(1, min(MAX_BLOCK, DISTINCT_BYTES // size))


def message_blocks(
    size: int, count: int, block: int
) -> Sequence[list[dict[str, bytes]]]:
    """Return blocks of messages for `Producer.produce_batch`.

    There are enough distinct values that no producer batch contains one twice, and few
    enough to be generated quickly.
    """
    rng = random.Random(SEED)
    different = max(1, min(count, DISTINCT_BYTES // size) // block)
    return [
        [{"value": json_value(rng, size)} for _ in range(block)]
        for _ in range(different)
    ]


def timestamped(padding: bytes, now: int) -> bytes:
    """Return the value with its first 19 bytes replaced by a time in nanoseconds."""
    return b"%019d" % now + padding[TIMESTAMP_LENGTH:]


def _order(rng: random.Random) -> dict[str, object]:
    return {
        "id": rng.getrandbits(40),
        "city": rng.choice(CITIES),
        "state": rng.choice(STATES),
        "amount": rng.randrange(100, 1_000_000) / 100,
        "token": f"{rng.getrandbits(64):016x}",
        "items": [rng.randrange(10_000) for _ in range(rng.randrange(1, 5))],
    }
