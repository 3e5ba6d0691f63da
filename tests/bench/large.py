"""The cases of the measurement `large`: sizes of values, compression, batch sizes.

A producer's `batch.size` decides what a client decodes. With Java's default of 16 KiB
each record of 10 KiB is a batch, with its own header and checksum, and is compressed
alone; a batch of 1 MiB has a hundred of them.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

__all__ = [
    "CASES",
    "DEFAULT_BATCH",
    "LARGE_BATCH",
    "Case",
    "case_records",
    "parse_cases",
]

KIB: Final = 1 << 10
DEFAULT_BATCH: Final = 16 * KIB
LARGE_BATCH: Final = 1 << 20

SLOW_CODEC_BYTES: Final = 0.6
"""The bytes of a compressed topic relative to an uncompressed one: all clients take
longer for them."""

SMALL_RECORD_BYTES: Final = 0.4
"""The same for records of 1 KiB and less."""


class Case(NamedTuple):
    """A topic to read; sizes in bytes.

    Attributes:
        size: of a value.
        codec: compression, or "none".
        batch_size: the producer's `batch.size`.
    """

    size: int
    codec: str
    batch_size: int

    def __str__(self) -> str:
        return f"{self.size}:{self.codec}:{self.batch_size}"


# Values of 100 KiB are larger than the small batch: each is a batch of its own.
CASES: Final[Sequence[Case]] = (
    Case(1 * KIB, "none", DEFAULT_BATCH),
    Case(10 * KIB, "none", DEFAULT_BATCH),
    Case(10 * KIB, "lz4", DEFAULT_BATCH),
    Case(10 * KIB, "zstd", DEFAULT_BATCH),
    Case(100 * KIB, "none", DEFAULT_BATCH),
    *(
        Case(size, codec, LARGE_BATCH)
        for size in (1 * KIB, 10 * KIB, 100 * KIB)
        for codec in ("none", "lz4", "zstd")
    ),
)


def case_records(case: Case, max_bytes: int) -> int:
    """Return the number of records, so that reading takes about as long in each case.

    Args:
        case: of the topic.
        max_bytes: of the values of uncompressed records above 1 KiB.
    """
    size = float(max_bytes)
    if case.size <= KIB:
        size *= SMALL_RECORD_BYTES
    elif case.codec != "none":
        size *= SLOW_CODEC_BYTES
    return max(1, int(size) // case.size)


def parse_cases(text: str) -> list[Case]:
    """Parse cases such as `10240:lz4:16384`, separated by commas.

    Raises:
        ValueError: a case does not have these three parts.
    """
    return [_parse_case(word.strip()) for word in text.split(",") if word.strip()]


def _parse_case(text: str) -> Case:
    size, codec, batch_size = text.split(":")
    return Case(int(size), codec, int(batch_size))
