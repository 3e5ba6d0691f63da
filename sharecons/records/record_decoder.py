"""Decoding the records of a batch of format 2 (KIP-98, "Message Format").

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

from typing import Final

from sharecons._record import AckTarget, Headers, Record, TimestampType
from sharecons.records.batch_header import APPEND_TIME, Header
from sharecons.records.errors import DamagedError
from sharecons.records.varints import VARINT, VARLONG, read_length, read_varint

__all__ = ["END_OF_SPANS", "Span", "read_records"]

Span = tuple[int, int, int]
"""First offset, last offset and delivery count of an acquired range."""

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
    # Unrolled, see docs/design.md, "Two unrolled decoders": the loop contains no calls,
    # since in plain Python a call takes half the time of a record. Varints of one and
    # two bytes are decoded inline, longer ones by `read_varint`. Bounds are checked
    # once per record: an index after the data raises, and a slice after it leaves
    # `position` unequal to `end`.
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
