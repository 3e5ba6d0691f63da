"""Record batches of format 2 (KIP-98, "Message Format"): headers and records.

A batch:

    base offset            int64
    batch length           int32    number of bytes after this field
    partition leader epoch int32
    magic                  int8     2
    crc                    uint32   CRC-32C of the bytes after this field
    attributes             int16
    last offset delta      int32    kept when compaction removes the last records
    base timestamp         int64
    max timestamp          int64
    producer id            int64
    producer epoch         int16
    base sequence          int32
    record count           int32
    records                         compressed as a whole, if at all

The checksum does not cover the base offset and the length: the broker sets them after
the producer computed it. Formats 0 and 1 (`message_sets`) have offset, length and magic
at the same positions, so a reader can skip batches of any format.

A record:

    length          varint    number of bytes after this field
    attributes      int8      unused
    timestamp delta varlong
    offset delta    varint
    key             varint length, bytes; length -1 is null
    value           varint length, bytes; length -1 is null
    headers         varint count; each: name (varint length, UTF-8), value as above

A varint has its sign in bit 0 (see `varints`): as a length, 1 means null, and other odd
numbers are invalid.
"""

from struct import Struct
from typing import Final, final

from mypy_extensions import i64

from sharecons._record import AckTarget, Headers, Record, TimestampType
from sharecons.records.errors import DamagedError
from sharecons.records.varints import VARINT, VARLONG, read_length, read_varint

__all__ = [
    "APPEND_TIME",
    "CODEC_MASK",
    "CONTROL",
    "CRC_START",
    "END_OF_SPANS",
    "HEADER",
    "HEADER_SIZE",
    "LAST_OFFSET",
    "LENGTH_END",
    "MAGIC",
    "PREFIX_SIZE",
    "SMALLEST_LENGTH",
    "TRANSACTIONAL",
    "Header",
    "Span",
    "int16_at",
    "int32_at",
    "int64_at",
    "read_records",
    "uint32_at",
]

MAGIC: Final = 2

PREFIX_SIZE: Final = 17
"""Size of base offset, length and magic, which all formats have in common."""

HEADER: Final = Struct(">qiibIHiqqqhii")
HEADER_SIZE: Final = 61
LENGTH_END: Final = 12
"""The position from which the batch length counts."""
CRC_START: Final = 21
"""The position from which the checksum is computed."""
SMALLEST_LENGTH: Final = 14
"""The length of a message of format 0 with null key and value; smaller is invalid."""

CODEC_MASK: Final = 0x07
APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20


@final
class Header:
    """The header of the batch from `position` to `end` (exclusive).

    The batch can have another format or be truncated: check `magic` and `end`. Only
    `base_offset`, `length` and `magic` are valid in all formats.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_timestamp",
        "count",
        "crc",
        "end",
        "last_offset",
        "length",
        "magic",
        "max_timestamp",
        "position",
    )

    def __init__(self, payload: bytes | memoryview, position: int) -> None:
        raw, at = b"", position
        if isinstance(payload, bytes):
            raw = payload
        else:
            raw, at = payload[position : position + HEADER_SIZE].tobytes(), 0
        if len(raw) - at < HEADER_SIZE:
            raw, at = raw[at:].ljust(HEADER_SIZE, b"\0"), 0
        # The producer's id, epoch and sequence are not needed.
        self.base_offset = int64_at(raw, at)
        self.length = int32_at(raw, at + 8)
        self.magic = raw[at + 16]
        self.crc = uint32_at(raw, at + 17)
        self.attributes = int16_at(raw, at + 21)
        self.last_offset = self.base_offset + int32_at(raw, at + 23)
        self.base_timestamp = int64_at(raw, at + 27)
        self.max_timestamp = int64_at(raw, at + 35)
        self.count = int32_at(raw, at + 57)
        self.position = position
        self.end = position + LENGTH_END + self.length


# Compiled, these read a number without creating a Python object. They raise IndexError
# if the bytes end before the number does.

MASK: Final[i64] = 0xFFFFFFFF


def int16_at(data: bytes, at: i64) -> int:
    a: i64 = data[at]
    b: i64 = data[at + 1]
    number = a << 8 | b
    return number - ((number & 0x8000) << 1)


def uint32_at(data: bytes, at: i64) -> int:
    a: i64 = data[at]
    b: i64 = data[at + 1]
    c: i64 = data[at + 2]
    d: i64 = data[at + 3]
    return a << 24 | b << 16 | c << 8 | d


def int32_at(data: bytes, at: i64) -> int:
    number: i64 = uint32_at(data, at)
    return number - ((number & 0x80000000) << 1)


def int64_at(data: bytes, at: i64) -> int:
    high: i64 = int32_at(data, at)
    low: i64 = uint32_at(data, at + 4)
    return high << 32 | low


Span = tuple[int, int, int]
"""First offset, last offset and delivery count of an acquired range."""

LAST_OFFSET: Final = (1 << 63) - 1

END_OF_SPANS: Final = (1 << 63, 1 << 63, 0)
"""The last element of every list of spans: after all offsets, so that the loop need not
check for the end of the list."""

CREATED: Final = TimestampType.CREATE_TIME
APPENDED: Final = TimestampType.LOG_APPEND_TIME


def read_records(  # noqa: C901 - see below
    header: Header,
    data: bytes,
    position: int,
    spans: list[Span],
    topic: str,
    partition: int,
    ack_target: AckTarget,
    records: list[Record],
) -> int:
    """Append records of a batch, starting at `position`, with offsets in `spans`.

    `spans` are ascending, start with the first that overlaps the batch, and end with
    `END_OF_SPANS`. Returns the bytes of these records, with their lengths.

    Raises:
        DamagedError, IndexError: the data is invalid; the caller must remove the
            records that were appended.
    """
    # The loop contains no calls, since in plain Python a call takes half the time of a
    # record. Varints of one and two bytes are decoded inline, longer ones by
    # `read_varint`. Bounds are checked once per record: an index after the data raises,
    # and a slice after it leaves `position` unequal to `end`.
    stop = len(data)
    uncounted = position  # the bytes before the records, and of those skipped
    base_offset = header.base_offset
    last_offset = header.last_offset
    base_timestamp = header.base_timestamp
    max_timestamp = header.max_timestamp
    appended = header.attributes & APPEND_TIME != 0
    timestamp_type = APPENDED if appended else CREATED
    index = 0
    first, last, delivery_count = spans[0]
    next_wanted = first  # the next acquired offset
    min_offset = base_offset  # the minimum of the next record's offset
    offset = base_offset
    for _ in range(header.count):
        begin = position
        number = data[position]
        if number < 0x80:
            position += 1
        else:
            high = data[position + 1]
            if high < 0x80:
                number += (high << 7) - 0x80
                position += 2
            else:
                number, position = read_varint(data, position, VARINT)
        end = position + (number >> 1)
        if end > stop or number & 1:
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
                number, position = read_varint(data, position + 1, VARLONG)
        if appended:
            timestamp = max_timestamp
        elif number & 1:
            timestamp = base_timestamp + ~(number >> 1)
        else:
            timestamp = base_timestamp + (number >> 1)

        number = data[position]
        if number < 0x80:
            position += 1
        else:
            high = data[position + 1]
            if high < 0x80:
                number += (high << 7) - 0x80
                position += 2
            else:
                number, position = read_varint(data, position, VARINT)
        if number & 1:
            raise DamagedError("a record has an invalid offset")
        offset = base_offset + (number >> 1)
        if offset != next_wanted:
            # Within a span, `next_wanted` is the offset after the previous record; at
            # its start, `min_offset` is.
            if (offset < next_wanted and next_wanted != first) or offset < min_offset:
                raise DamagedError("the offsets of the records are not ascending")
            while offset > last:
                index += 1
                first, last, delivery_count = spans[index]
            if offset < first:
                if first > last_offset and offset < last_offset:
                    return begin - uncounted
                next_wanted = first
                min_offset = offset + 1
                position = end
                uncounted += end - begin
                continue
            next_wanted = offset

        number = data[position]
        if number < 0x80:
            position += 1
        else:
            high = data[position + 1]
            if high < 0x80:
                number += (high << 7) - 0x80
                position += 2
            else:
                number, position = read_varint(data, position, VARINT)
        if number & 1:
            if number != 1:
                raise DamagedError("a key has an invalid length")
            key = None
        else:
            start = position
            position += number >> 1
            key = data[start:position]

        number = data[position]
        if number < 0x80:
            position += 1
        else:
            high = data[position + 1]
            if high < 0x80:
                number += (high << 7) - 0x80
                position += 2
            else:
                number, position = read_varint(data, position, VARINT)
        if number & 1:
            if number != 1:
                raise DamagedError("a value has an invalid length")
            value = None
        else:
            start = position
            position += number >> 1
            value = data[start:position]

        if data[position]:
            headers, position = read_headers(data, position)
        else:
            position += 1
            headers = ()
        if position != end:
            raise DamagedError("a record's fields do not match its length")
        records.append(
            Record(
                topic,
                partition,
                offset,
                timestamp,
                timestamp_type,
                key,
                value,
                headers,
                delivery_count,
                ack_target,
            )
        )
        if offset == last:
            index += 1
            first, last, delivery_count = spans[index]
            if first > last_offset and offset < last_offset:
                # Skip the rest of the batch: a lot, if few of its records are acquired.
                return position - uncounted
            next_wanted = first
            min_offset = offset + 1
        else:
            next_wanted = offset + 1
    if position != stop:
        raise DamagedError("bytes are left over after the last record")
    if offset > last_offset:
        raise DamagedError("a record's offset is after the batch's last offset")
    return position - uncounted


def read_headers(data: bytes, position: int) -> tuple[Headers, int]:
    """Return a record's headers and the position after them."""
    count, position = read_length(data, position)
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        # Bit 7 is set if more bytes follow, bit 0 if the number is negative.
        length = data[position]
        if length & 0x81:
            length, position = read_length(data, position)
        else:
            length >>= 1
            position += 1
        start = position
        position += length
        # Kafka allows any bytes in a name. A name that is not UTF-8 must not make the
        # record unreadable; encode("utf-8", "surrogateescape") restores its bytes.
        name = data[start:position].decode("utf-8", "surrogateescape")

        length = data[position]
        if length == 1:
            position += 1
            headers.append((name, None))
            continue
        if length & 0x81:
            length, position = read_length(data, position)
        else:
            length >>= 1
            position += 1
        start = position
        position += length
        headers.append((name, data[start:position]))
    return tuple(headers), position
