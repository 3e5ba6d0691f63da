"""Values that compress about as well as what people send: JSON, each one different."""

import json
import random
from collections.abc import Sequence
from typing import Final

__all__ = ["STAMP", "blocks", "stamped", "value"]

STAMP: Final = 19  # digits of nanoseconds since the epoch, until the year 2286
SEED: Final = 932
ENOUGH: Final = 4_000_000  # bytes of different values, over and over
CITIES: Final = ("Lisbon", "Nairobi", "Osaka", "Quito", "Riga", "Tunis", "Yerevan")
STATES: Final = ("new", "paid", "packed", "sent", "returned")


def value(chance: random.Random, size: int) -> bytes:
    """Give lines of JSON of exactly so many bytes; lz4 makes a half to a third of it.

    The last line is cut short: nobody reads it.
    """
    lines = bytearray()
    while len(lines) < size:
        lines += json.dumps(_order(chance), separators=(",", ":")).encode() + b"\n"
    return bytes(lines[:size])


def blocks(size: int, count: int, block: int) -> Sequence[list[dict[str, bytes]]]:
    """Give blocks of messages, as `Producer.produce_batch` takes them.

    Enough different ones that no producer's batch has a value twice, and few enough
    to be made in a moment.
    """
    chance = random.Random(SEED)
    different = max(1, min(count, ENOUGH // size) // block)
    return [
        [{"value": value(chance, size)} for _ in range(block)] for _ in range(different)
    ]


def stamped(filling: bytes, now: int) -> bytes:
    """Give a value that begins with the time at which it was made."""
    return b"%019d" % now + filling[STAMP:]


def _order(chance: random.Random) -> dict[str, object]:
    return {
        "id": chance.getrandbits(40),
        "city": chance.choice(CITIES),
        "state": chance.choice(STATES),
        "amount": chance.randrange(100, 1_000_000) / 100,
        "token": f"{chance.getrandbits(64):016x}",
        "items": [chance.randrange(10_000) for _ in range(chance.randrange(1, 5))],
    }
