"""What these tests share: reading everything, counting offsets, making nonsense."""

from collections.abc import Iterable, Sequence

from crc32c import crc32c

from sharecons.record import DETACHED, Headers, Record
from sharecons.records.batch import Decoded, decode
from sharecons.records.encoder import encode
from sharecons.records.layout import CRC_START, HEADER_SIZE, LENGTH_END

Span = tuple[int, int, int]
Told = tuple[int, int, bytes | None, bytes | None, Headers, int]

EVERYTHING = ((0, 1 << 40, 1),)


def read(payload: bytes | bytearray, acquired: Sequence[Span] = EVERYTHING) -> Decoded:
    return decode(bytes(payload), acquired, "orders", 3, DETACHED)


def told(records: Iterable[Record]) -> list[Told]:
    """Give what a reader cares for in each record, to be compared."""
    return [
        (
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            record.headers,
            record.delivery_count,
        )
        for record in records
    ]


def values(payload: bytes, acquired: Sequence[Span] = EVERYTHING) -> list[bytes | None]:
    return [record.value for record in read(payload, acquired).records]


def offsets(ranges: Iterable[Sequence[object]]) -> list[int]:
    """Give each offset of ranges, which may carry more than their two ends."""
    found: list[int] = []
    for first, last, *_ in ranges:
        assert isinstance(first, int)
        assert isinstance(last, int)
        assert first <= last
        found += range(first, last + 1)
    return found


def accounted(decoded: Decoded) -> list[int]:
    """Give every offset in any of the four parts, twice if it is in two."""
    return sorted(
        [record.offset for record in decoded.records]
        + offsets(decoded.gaps)
        + offsets(decoded.undecodable)
        + offsets(decoded.unseen)
    )


def reasons(decoded: Decoded) -> list[str]:
    return [undecodable.reason for undecodable in decoded.undecodable]


def sealed(batch: bytes | bytearray) -> bytes:
    """Give the batch the length and the checksum that it ought to have."""
    batch = bytearray(batch)
    batch[8:LENGTH_END] = (len(batch) - LENGTH_END).to_bytes(4, "big")
    batch[CRC_START - 4 : CRC_START] = crc32c(batch[CRC_START:]).to_bytes(4, "big")
    return bytes(batch)


def crafted(
    body: bytes | bytearray,
    *,
    count: int = 1,
    last_offset_delta: int = 0,
    attributes: int = 0,
) -> bytes:
    """Make a batch with a good checksum around bytes that need not make sense."""
    batch = bytearray(encode([], last_offset_delta=0))
    batch[21:23] = attributes.to_bytes(2, "big")
    batch[23:27] = last_offset_delta.to_bytes(4, "big", signed=True)
    batch[57:HEADER_SIZE] = count.to_bytes(4, "big", signed=True)
    return sealed(batch + body)
