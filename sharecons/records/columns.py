"""Decodes a batch into columns: buffers for Arrow, without an object per record.

`record_decoder` makes `Record`s for applications; this module writes Arrow's layout.
Keys and values are not copied: a column of bytes is a list of ascending positions in
`Columns.data`, the start and end of each value. Read as Arrow offsets, they also cut
out the bytes between values, so `sharecons.spark.arrow` takes every second element.

The buffers come from librt, mypyc's library: compiled code writes a number in 2 ns.
"""

from typing import Final, final

from librt.strings import BytesWriter, write_i16_le, write_i64_le
from mypy_extensions import i16, i64, u8

from sharecons.records.batch_header import APPEND_TIME, Header
from sharecons.records.errors import DamagedError
from sharecons.records.varints import VARINT, VARLONG, read_varint

__all__ = ["END_OF_SPANS", "LAST_OFFSET", "Columns", "Span", "read_batch"]

Span = tuple[int, int, int]
"""First offset, last offset and delivery count of the requested records."""

# Larger than any valid offset, so a span at it comes after all others.
LAST_OFFSET: Final = (1 << 63) - 1
END_OF_SPANS: Final = (LAST_OFFSET, LAST_OFFSET, 0)

MAX_MILLISECONDS: Final = 9_000_000_000_000_000
"""The limit of timestamps, 285,000 years from 1970, so that microseconds fit into 64
bits. Producers can write any number; larger ones are clamped."""

PRESENT: Final[u8] = 1
NULL: Final[u8] = 0


@final
class Columns:
    """Buffers of one value per record, little endian as in Arrow.

    Attributes:
        rows: the number of records.
        headers: the number of headers of all records.
        data: the bytes of all positions: the response's batches, or their decompressed
            records.
        keys, values: two int64 per record, its start and end in `data`.
        has_key, has_value: one byte per record, 0 for null.
        offsets: int64. timestamps: int64, in microseconds.
        timestamp_types: one byte each. delivery_counts: int16.
        header_ends: int64, the number of headers up to this record.
        header_names, header_values, header_has_value: the same, one per header.
    """

    __slots__ = (
        "data",
        "delivery_counts",
        "has_key",
        "has_value",
        "header_ends",
        "header_has_value",
        "header_names",
        "header_values",
        "headers",
        "keys",
        "offsets",
        "rows",
        "timestamp_types",
        "timestamps",
        "values",
    )

    def __init__(self) -> None:
        self.rows: i64 = 0
        self.headers: i64 = 0
        self.data: bytes = b""
        self.keys = BytesWriter()
        self.has_key = BytesWriter()
        self.values = BytesWriter()
        self.has_value = BytesWriter()
        self.offsets = BytesWriter()
        self.timestamps = BytesWriter()
        self.timestamp_types = BytesWriter()
        self.delivery_counts = BytesWriter()
        self.header_ends = BytesWriter()
        self.header_names = BytesWriter()
        self.header_values = BytesWriter()
        self.header_has_value = BytesWriter()


def read_batch(  # noqa: C901 - one loop, as in `record_decoder`
    header: Header,
    data: bytes,
    start: i64,
    stop: i64,
    base: i64,
    spans: list[Span],
    with_headers: bool,
    columns: Columns,
) -> None:
    """Append the records of a batch whose offsets are in `spans`.

    They are in `data` from `start` to `stop`; `base` is added to the positions.
    """
    # Unrolled as `record_decoder`, see docs/design.md, "Two unrolled decoders": when
    # compiled, the loop works on numbers of the machine and creates no Python object.
    keys, has_key = columns.keys, columns.has_key
    values, has_value = columns.values, columns.has_value
    offsets, timestamps = columns.offsets, columns.timestamps
    timestamp_types = columns.timestamp_types
    delivery_counts = columns.delivery_counts
    base_offset: i64 = header.base_offset
    last_delta: i64 = header.last_offset - header.base_offset
    count: i64 = header.count
    base_timestamp: i64 = _clamp(header.base_timestamp)
    max_timestamp: i64 = _clamp(header.max_timestamp)
    appended = header.attributes & APPEND_TIME != 0
    timestamp_type: u8 = 1 if appended else 0
    index = 0
    span_first: i64 = spans[0][0]
    span_last: i64 = spans[0][1]
    delivery_count: i16 = spans[0][2]
    position: i64 = start
    number: i64
    high: i64
    min_delta: i64 = 0  # the minimum of the next record's delta
    rows: i64 = 0
    row: i64 = 0
    while row < count:
        row += 1
        number = data[position]
        if number < 0x80:
            position += 1
        else:
            high = data[position + 1]
            if high < 0x80:
                number += (high << 7) - 0x80
                position += 2
            else:
                number, position = _varint(data, position)
        end: i64 = position + (number >> 1)
        if end > stop or number & 1 != 0:
            raise DamagedError("a record has an invalid length")

        number = data[position + 1]
        if number < 0x80:
            position += 2
        else:
            high = data[position + 2]
            if high < 0x80:
                number += (high << 7) - 0x80
                position += 3
            else:
                number, position = _varlong(data, position + 1)
        timestamp: i64 = max_timestamp
        if not appended:
            timestamp = base_timestamp + ((number >> 1) ^ -(number & 1))

        number = data[position]
        if number < 0x80:
            position += 1
        else:
            high = data[position + 1]
            if high < 0x80:
                number += (high << 7) - 0x80
                position += 2
            else:
                number, position = _varint(data, position)
        delta: i64 = number >> 1
        if number & 1 != 0 or delta < min_delta or delta > last_delta:
            raise DamagedError("the offsets of the records are not ascending")
        min_delta = delta + 1
        offset: i64 = base_offset + delta
        while offset > span_last:
            index += 1
            span_first = spans[index][0]
            span_last = spans[index][1]
            delivery_count = spans[index][2]
        if offset < span_first:
            if span_first > base_offset + last_delta:
                break  # the rest of the batch was not requested
            position = end
            continue

        number = data[position]
        if number < 0x80:
            position += 1
        else:
            high = data[position + 1]
            if high < 0x80:
                number += (high << 7) - 0x80
                position += 2
            else:
                number, position = _varint(data, position)
        write_i64_le(keys, base + position)
        if number & 1 != 0:
            if number != 1:
                raise DamagedError("a key has an invalid length")
            has_key.append(NULL)
        else:
            position += number >> 1
            has_key.append(PRESENT)
        write_i64_le(keys, base + position)

        if position >= end:
            raise DamagedError("a record's fields do not match its length")
        number = data[position]
        if number < 0x80:
            position += 1
        else:
            high = data[position + 1]
            if high < 0x80:
                number += (high << 7) - 0x80
                position += 2
            else:
                number, position = _varint(data, position)
        write_i64_le(values, base + position)
        if number & 1 != 0:
            if number != 1:
                raise DamagedError("a value has an invalid length")
            has_value.append(NULL)
        else:
            position += number >> 1
            has_value.append(PRESENT)
        write_i64_le(values, base + position)

        if position >= end:
            raise DamagedError("a record's fields do not match its length")
        if with_headers:
            position = _read_headers(data, position, base, end, columns)
        elif data[position] == 0:
            position += 1
        else:
            position = end
        if position != end:
            raise DamagedError("a record's fields do not match its length")
        if timestamp > MAX_MILLISECONDS:
            timestamp = MAX_MILLISECONDS
        elif timestamp < -MAX_MILLISECONDS:
            timestamp = -MAX_MILLISECONDS
        write_i64_le(offsets, offset)
        write_i64_le(timestamps, timestamp * 1000)
        timestamp_types.append(timestamp_type)
        write_i16_le(delivery_counts, delivery_count)
        rows += 1
    else:
        if position != stop:
            raise DamagedError("bytes are left over after the last record")
    columns.rows += rows


def _read_headers(
    data: bytes, position: i64, base: i64, end: i64, columns: Columns
) -> i64:
    """Append a record's headers; return the position after them."""
    names, values = columns.header_names, columns.header_values
    number: i64
    number, position = _varint(data, position)
    if number & 1 != 0 or number > end - position << 1:
        raise DamagedError("a record has an invalid number of headers")
    left: i64 = number >> 1
    columns.headers += left
    while left > 0:
        left -= 1
        number, position = _varint(data, position)
        write_i64_le(names, base + position)
        position += number >> 1
        write_i64_le(names, base + position)
        if number & 1 != 0 or position >= end:
            raise DamagedError("a header has an invalid name")
        number, position = _varint(data, position)
        write_i64_le(values, base + position)
        if number & 1 != 0:
            if number != 1:
                raise DamagedError("a header has an invalid length")
            columns.header_has_value.append(NULL)
        else:
            position += number >> 1
            columns.header_has_value.append(PRESENT)
        write_i64_le(values, base + position)
        if position > end:
            raise DamagedError("a header ends after its record")
    write_i64_le(columns.header_ends, columns.headers)
    return position


def _varint(data: bytes, position: i64) -> tuple[i64, i64]:
    number, after = read_varint(data, position, VARINT)
    return number, after


def _varlong(data: bytes, position: i64) -> tuple[i64, i64]:
    """Read a timestamp's delta, clamped to the range of timestamps."""
    number, after = read_varint(data, position, VARLONG)
    return min(number, 2 * MAX_MILLISECONDS + (number & 1)), after


def _clamp(milliseconds: int) -> int:
    return max(-MAX_MILLISECONDS, min(milliseconds, MAX_MILLISECONDS))
