"""A set of offsets as ranges, and its text in the metadata of a committed offset.

The text is the distances between the ends of the ranges, as variable-length integers
with 7 bits per byte, deflated, in base 85. If a random half of the dead letters is
marked, a character holds about 5 dead letters.
"""

import zlib
from base64 import b85decode, b85encode
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

__all__ = ["OffsetRange", "OffsetRanges"]

RAW_DEFLATE: Final = -15
"""The window of zlib, without a header and a checksum."""

MAX_BITS: Final = 63
"""The size of an offset."""


class OffsetRange(NamedTuple):
    """Consecutive offsets; `end` is excluded."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class OffsetRanges:
    """A set of offsets: ranges in order that neither overlap nor touch."""

    ranges: tuple[OffsetRange, ...] = ()

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> "OffsetRanges":
        """Return the union of ranges, which can be in any order and overlap."""
        merged: list[OffsetRange] = []
        for start, end in sorted(ranges):
            if merged and start <= merged[-1].end:
                first, last = merged[-1]
                merged[-1] = OffsetRange(first, max(last, end))
            elif start < end:
                merged.append(OffsetRange(start, end))
        return cls(tuple(merged))

    def __contains__(self, offset: int) -> bool:
        number = bisect_right(self.ranges, offset, key=lambda each: each.start)
        return number > 0 and offset < self.ranges[number - 1].end

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def union(self, *others: "OffsetRanges") -> "OffsetRanges":
        """Return the offsets that are in this set or in another one."""
        return OffsetRanges.of(each for one in (self, *others) for each in one.ranges)

    def without(self, offsets: Iterable[int]) -> "OffsetRanges":
        """Return the set without some offsets."""
        return OffsetRanges.of(_split(self.ranges, sorted(set(offsets))))

    @property
    def start(self) -> int:
        """The first offset of the set; 0 if it is empty."""
        return self.ranges[0].start if self.ranges else 0

    @property
    def end(self) -> int:
        """The offset after the last one of the set; 0 if it is empty."""
        return self.ranges[-1].end if self.ranges else 0

    @property
    def low_water(self) -> int:
        """The first offset from 0 that is not in the set."""
        return self.ranges[0].end if self.ranges and not self.ranges[0].start else 0

    def encode(self, base: int = 0) -> str:
        """Return a text of ASCII characters, none of which JSON escapes.

        Args:
            base: encode only offsets from here; shorter if it is near the first one.
        """
        data, last = bytearray(), base
        for start, end in self.ranges:
            if end > base:
                _write_number(data, max(start, base) - last)
                _write_number(data, end - max(start, base))
                last = end
        if not data:
            return ""
        deflate = zlib.compressobj(9, wbits=RAW_DEFLATE)
        return b85encode(deflate.compress(data) + deflate.flush()).decode()

    @classmethod
    def decode(cls, text: str, base: int = 0) -> "OffsetRanges":
        """Return the set that `encode` was called for.

        Raises:
            ValueError: the text is damaged.
        """
        if not text:
            return cls()
        try:
            numbers = list(_read_numbers(zlib.decompress(b85decode(text), RAW_DEFLATE)))
        except zlib.error as error:
            raise ValueError(f"damaged ranges: {error}") from error
        ranges: list[tuple[int, int]] = []
        for distance, length in zip(numbers[::2], numbers[1::2], strict=True):
            start = base + distance
            base = start + length
            ranges.append((start, base))
        return cls.of(ranges)


def _split(
    ranges: Iterable[OffsetRange], removed: list[int]
) -> Iterator[tuple[int, int]]:
    for start, end in ranges:
        for offset in removed[bisect_right(removed, start - 1) :]:
            if offset >= end:
                break
            yield start, offset
            start = offset + 1
        yield start, end


def _write_number(data: bytearray, number: int) -> None:
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)


def _read_numbers(data: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            yield number
            number = shift = 0
        elif shift > MAX_BITS:
            raise ValueError("damaged ranges: a number is too long")
    if shift:
        raise ValueError("damaged ranges: the last number is cut off")
