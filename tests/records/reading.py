"""Helpers for tests of records: decode a payload, list offsets, craft batches."""

from collections.abc import Iterable, Sequence

from crc32c import crc32c

from sharecons.record import DETACHED, Headers, Record
from sharecons.records.batch import Decoded, decode
from sharecons.records.batch_header import CRC_START, HEADER_SIZE, LENGTH_END
from sharecons.records.encoder import encode

Span = tuple[int, int, int]
RecordFields = tuple[int, int, bytes | None, bytes | None, Headers, int]

EVERYTHING = ((0, 1 << 40, 1),)


def decode_payload(
    payload: bytes | bytearray, acquired: Sequence[Span] = EVERYTHING
) -> Decoded:
    return decode(bytes(payload), acquired, "orders", 3, DETACHED)


def record_fields(records: Iterable[Record]) -> list[RecordFields]:
    """Return the fields of each record that tests compare."""
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
    return [record.value for record in decode_payload(payload, acquired).records]


def offsets(ranges: Iterable[Sequence[object]]) -> list[int]:
    """Return all offsets in the ranges, each a tuple that begins with its two ends."""
    found: list[int] = []
    for first, last, *_ in ranges:
        assert isinstance(first, int)
        assert isinstance(last, int)
        assert first <= last
        found += range(first, last + 1)
    return found


def all_offsets(decoded: Decoded) -> list[int]:
    """Return the offsets in all four parts, twice if an offset is in two."""
    return sorted(
        [record.offset for record in decoded.records]
        + offsets(decoded.gaps)
        + offsets(decoded.undecodable)
        + offsets(decoded.unseen)
    )


def reasons(decoded: Decoded) -> list[str]:
    return [undecodable.reason for undecodable in decoded.undecodable]


def with_checksum(batch: bytes | bytearray) -> bytes:
    """Return the batch with a correct length and checksum."""
    batch = bytearray(batch)
    batch[8:LENGTH_END] = (len(batch) - LENGTH_END).to_bytes(4, "big")
    batch[CRC_START - 4 : CRC_START] = crc32c(batch[CRC_START:]).to_bytes(4, "big")
    return bytes(batch)


def batch_with_body(
    body: bytes | bytearray,
    *,
    count: int = 1,
    last_offset_delta: int = 0,
    attributes: int = 0,
) -> bytes:
    """Return a batch with a correct checksum and any bytes as its body."""
    batch = bytearray(encode([], last_offset_delta=0))
    batch[21:23] = attributes.to_bytes(2, "big")
    batch[23:27] = last_offset_delta.to_bytes(4, "big", signed=True)
    batch[57:HEADER_SIZE] = count.to_bytes(4, "big", signed=True)
    return with_checksum(batch + body)
