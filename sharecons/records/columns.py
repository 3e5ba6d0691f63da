"""Records to columns: what a plain Fetch brings, without an object for each record.

`body` makes records for an application's loop; this makes buffers for Arrow. Keys and
values are not even copied here: a column of bytes is written as positions within
`Columns.data`, start and end of each, ascending. Whoever has Arrow at hand takes every
second piece of `data` that these positions cut (`sharecons.spark.arrow`).

Here the checksum decides for a whole answer: a batch that is damaged ends the read with
an error that says where, since nothing may be left out of a replay in silence.

The buffers are librt's, mypyc's own library: compiled, a number is written in 2 ns.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, final

from crc32c import crc32c
from librt.strings import BytesWriter, write_i16_le, write_i64_le
from mypy_extensions import i16, i64, u8

from sharecons.records.compression import decompress
from sharecons.records.damage import DamagedError
from sharecons.records.layout import (
    APPEND_TIME,
    CODEC_MASK,
    CONTROL,
    CRC_START,
    HEADER_SIZE,
    MAGIC,
    PREFIX_SIZE,
    SMALLEST_LENGTH,
    TRANSACTIONAL,
    Header,
)
from sharecons.records.varints import VARINT, VARLONG, read_varint

__all__ = ["Columns", "ColumnsReader", "Span", "next_offset"]

Span = tuple[int, int, int]
"""First offset, last offset and delivery count of what is wanted."""

# The last offset that is none, so that a span at it lies after all others.
LAST_OFFSET: Final = (1 << 63) - 1
BEYOND: Final = (LAST_OFFSET, LAST_OFFSET, 0)

MOST_MILLISECONDS: Final = 9_000_000_000_000_000
"""Producers may write any number for a timestamp; microseconds have to fit into 64
bits. What is further from 1970 than 285,000 years is moved there."""

MOST_DATA: Final = 32 << 20

THERE: Final[u8] = 1
NULL: Final[u8] = 0

_PRODUCER_ID: Final = Struct(">q")
_PRODUCER_ID_AT: Final = 43


@final
class Columns:
    """Buffers of one value for each record: little endian, as Arrow has them.

    Attributes:
        rows: how many records.
        data: what positions mean: an answer's batches, or what they unfolded to.
        keys, values: two int64 for each record, where it starts and ends in `data`.
        has_key, has_value: a byte for each record, 0 for null.
        offsets: int64. timestamps: int64, in microseconds.
        timestamp_types: a byte each. delivery_counts: int16.
        header_ends: int64, how many headers there are up to this record.
        header_names, header_values, header_has_value: as those of records, by header.
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


def next_offset(payload: memoryview, offset: int) -> int:
    """Say where to fetch on after an answer: behind its last whole batch.

    Looks at nothing but headers, so that the next fetch need not wait for the decoder;
    gives `offset` itself if there is no whole batch.
    """
    position = 0
    size = len(payload)
    while size - position >= PREFIX_SIZE:
        header = Header(payload, position)
        if header.length < SMALLEST_LENGTH or header.end > size:
            break
        if header.magic == MAGIC:
            offset = max(offset, header.last_offset + 1)
        position = header.end
    return offset


@final
class ColumnsReader:
    """Reads one partition's part of a Fetch answer, some `Columns` at a time.

    Args:
        payload: whole batches, the last perhaps cut off.
        spans: what is wanted, ascending, none overlapping another; read from the
            first that an offset of the payload lies in.
        aborted: producer id and first offset of each aborted transaction, if those
            are to be left out.
        most: bytes of unfolded data after which `read` gives what it has.
    """

    __slots__ = (
        "_aborted",
        "_aborting",
        "_ended",
        "_index",
        "_payload",
        "_position",
        "_spans",
        "_view",
        "_with_headers",
        "most",
    )

    def __init__(
        self,
        payload: memoryview,
        spans: Sequence[Span],
        *,
        aborted: Sequence[tuple[int, int]] = (),
        with_headers: bool = False,
        most: int = MOST_DATA,
    ) -> None:
        # Slices of bytes and their indices are the cheapest that there are.
        self._payload = payload.tobytes()
        self._view = memoryview(self._payload)
        self._position = 0
        self._ended = False
        self._spans = spans
        self._index = 0
        self._aborted = sorted((first, producer) for producer, first in aborted)
        self._aborting: set[int] = set()
        self._with_headers = with_headers
        self.most = most

    def read(self) -> Columns | None:
        """Read on; None if nothing is left.

        Raises:
            DamagedError: a batch is damaged; nothing more can be read.
        """
        while not self._ended:
            columns = Columns()
            self._fill(columns)
            if columns.rows:
                return columns
        return None

    def _fill(self, columns: Columns) -> None:
        unfolded: list[bytes] = []
        size = 0  # of all that was unfolded
        while size < self.most:
            header = self._next_header()
            if header is None:
                self._ended = True
                break
            spans = self._spans_of(header)
            # Markers count where nothing is wanted, too.
            if self._is_to_skip(header) or len(spans) == 1:
                self._position = header.end
                continue
            codec = header.attributes & CODEC_MASK
            # Positions are of one buffer: the answer, or what was unfolded of it.
            if columns.rows and bool(codec) != bool(unfolded):
                break
            start = header.position + HEADER_SIZE
            self._check_sum(header)
            if codec:
                body = decompress(codec, self._payload[start : header.end])
                self._read(header, body, 0, len(body), size, spans, columns)
                unfolded.append(body)
                size += len(body)
            else:
                unfolded, size = [], 0
                self._read(header, self._payload, start, header.end, 0, spans, columns)
            self._position = header.end
        columns.data = b"".join(unfolded) if unfolded else self._payload

    def _next_header(self) -> Header | None:
        """Find the next batch, if it is whole."""
        if len(self._payload) - self._position < PREFIX_SIZE:
            return None
        header = Header(self._view, self._position)
        if header.length < SMALLEST_LENGTH:
            raise DamagedError(f"no batch is {header.length} bytes long")
        if header.end > len(self._payload):
            return None
        if header.magic != MAGIC:
            raise DamagedError(f"a record batch of unknown format {header.magic}")
        if header.end - header.position < HEADER_SIZE:
            raise DamagedError("a batch too short for its header")
        if not header.base_offset <= header.last_offset < LAST_OFFSET:
            raise DamagedError("a batch whose offsets make no sense")
        return header

    def _spans_of(self, header: Header) -> list[Span]:
        """Give the spans that overlap a batch, then `BEYOND`."""
        wanted = self._spans
        while self._index < len(wanted) and wanted[self._index][1] < header.base_offset:
            self._index += 1
        index = self._index
        spans: list[Span] = []
        while index < len(wanted) and wanted[index][0] <= header.last_offset:
            spans.append(wanted[index])
            index += 1
        spans.append(BEYOND)
        return spans

    def _is_to_skip(self, header: Header) -> bool:
        """Whether a batch marks a transaction's end, or belongs to an aborted one."""
        if not header.attributes & (CONTROL | TRANSACTIONAL):
            return False
        control = header.attributes & CONTROL != 0
        if not self._aborted and not self._aborting:
            return control
        while self._aborted and self._aborted[0][0] <= header.last_offset:
            self._aborting.add(self._aborted.pop(0)[1])
        producer: int = _PRODUCER_ID.unpack_from(
            self._view, header.position + _PRODUCER_ID_AT
        )[0]
        if control:
            # Whatever it says: an aborted transaction's first marker is its last.
            self._aborting.discard(producer)
            return True
        return producer in self._aborting

    def _check_sum(self, header: Header) -> None:
        if crc32c(self._view[header.position + CRC_START : header.end]) != header.crc:
            raise DamagedError(
                f"the checksum of the batch at offset {header.base_offset} is wrong"
            )

    def _read(
        self,
        header: Header,
        data: bytes,
        start: int,
        stop: int,
        base: int,
        spans: list[Span],
        columns: Columns,
    ) -> None:
        try:
            read_batch(
                header, data, start, stop, base, spans, self._with_headers, columns
            )
        except IndexError:
            raise DamagedError("the bytes end within a record") from None
        except DamagedError as error:
            raise DamagedError(
                f"the batch at offset {header.base_offset}: {error}"
            ) from None


def read_batch(  # noqa: C901 - one loop, as in `body`
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

    They lie in `data` from `start` to `stop`; `base` is added to their positions.
    """
    keys, has_key = columns.keys, columns.has_key
    values, has_value = columns.values, columns.has_value
    offsets, timestamps = columns.offsets, columns.timestamps
    timestamp_types = columns.timestamp_types
    delivery_counts = columns.delivery_counts
    base_offset: i64 = header.base_offset
    last_delta: i64 = header.last_offset - header.base_offset
    count: i64 = header.count
    base_timestamp: i64 = _clamped(header.base_timestamp)
    max_timestamp: i64 = _clamped(header.max_timestamp)
    appended = header.attributes & APPEND_TIME != 0
    timestamp_type: u8 = 1 if appended else 0
    index = 0
    span_first: i64 = spans[0][0]
    span_last: i64 = spans[0][1]
    delivery_count: i16 = spans[0][2]
    position: i64 = start
    number: i64
    high: i64
    due: i64 = 0  # the lowest delta that the next record may have
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
            raise DamagedError("a record's length makes no sense")

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
        if number & 1 != 0 or delta < due or delta > last_delta:
            raise DamagedError("the offsets of the records do not ascend")
        due = delta + 1
        offset: i64 = base_offset + delta
        while offset > span_last:
            index += 1
            span_first = spans[index][0]
            span_last = spans[index][1]
            delivery_count = spans[index][2]
        if offset < span_first:
            if span_first > base_offset + last_delta:
                break  # the rest of the batch is not wanted
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
                raise DamagedError("a key's length makes no sense")
            has_key.append(NULL)
        else:
            position += number >> 1
            has_key.append(THERE)
        write_i64_le(keys, base + position)

        if position >= end:
            raise DamagedError("a record does not fill its length")
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
                raise DamagedError("a value's length makes no sense")
            has_value.append(NULL)
        else:
            position += number >> 1
            has_value.append(THERE)
        write_i64_le(values, base + position)

        if position >= end:
            raise DamagedError("a record does not fill its length")
        if with_headers:
            position = _read_headers(data, position, base, end, columns)
        elif data[position] == 0:
            position += 1
        else:
            position = end
        if position != end:
            raise DamagedError("a record does not fill its length")
        if timestamp > MOST_MILLISECONDS:
            timestamp = MOST_MILLISECONDS
        elif timestamp < -MOST_MILLISECONDS:
            timestamp = -MOST_MILLISECONDS
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
    """Append a record's headers; give the position after them."""
    names, values = columns.header_names, columns.header_values
    number: i64
    number, position = _varint(data, position)
    if number & 1 != 0 or number > end - position << 1:
        raise DamagedError("a record's number of headers makes no sense")
    left: i64 = number >> 1
    columns.headers += left
    while left > 0:
        left -= 1
        number, position = _varint(data, position)
        write_i64_le(names, base + position)
        position += number >> 1
        write_i64_le(names, base + position)
        if number & 1 != 0 or position >= end:
            raise DamagedError("a header's name makes no sense")
        number, position = _varint(data, position)
        write_i64_le(values, base + position)
        if number & 1 != 0:
            if number != 1:
                raise DamagedError("a header's length makes no sense")
            columns.header_has_value.append(NULL)
        else:
            position += number >> 1
            columns.header_has_value.append(THERE)
        write_i64_le(values, base + position)
        if position > end:
            raise DamagedError("a header goes beyond its record")
    write_i64_le(columns.header_ends, columns.headers)
    return position


def _varint(data: bytes, position: i64) -> tuple[i64, i64]:
    number, after = read_varint(data, position, VARINT)
    return number, after


def _varlong(data: bytes, position: i64) -> tuple[i64, i64]:
    """Read a timestamp's delta, no further from 0 than a timestamp may be."""
    number, after = read_varint(data, position, VARLONG)
    return min(number, 2 * MOST_MILLISECONDS + (number & 1)), after


def _clamped(milliseconds: int) -> int:
    return max(-MOST_MILLISECONDS, min(milliseconds, MOST_MILLISECONDS))
