"""Reading the records of one batch: the loop that decides how fast the client is.

    length          varint    of all that follows it
    attributes      int8      none is in use
    timestamp delta varlong
    offset delta    varint
    key             varint length, bytes; length -1 is null
    value           varint length, bytes; length -1 is null
    headers         varint count, of each: name (varint length, UTF-8), value as above

A varint's sign is in its bit 0 (see `varints`): 1 is the length of null, other odd
numbers are lengths of nothing.
"""

from typing import Final

from sharecons._record import AckTarget, Headers, Record, TimestampType
from sharecons.records.errors import DamagedError
from sharecons.records.layout import APPEND_TIME, Header
from sharecons.records.varints import VARINT, VARLONG, read_length, read_varint

__all__ = ["BEYOND", "LAST_OFFSET", "Span", "read_records"]

Span = tuple[int, int, int]
"""First offset, last offset and delivery count of what was acquired."""

LAST_OFFSET: Final = (1 << 63) - 1

BEYOND: Final = (1 << 63, 1 << 63, 0)
"""Ends every list of spans: lies after all offsets, so that a reader need not count."""

CREATED: Final = TimestampType.CREATE_TIME
APPENDED: Final = TimestampType.LOG_APPEND_TIME


def read_records(  # noqa: C901 - see below
    header: Header,
    data: bytes,
    position: int,
    spans: list[Span],
    topic: str,
    partition: int,
    holder: AckTarget,
    records: list[Record],
) -> None:
    """Append the records of a batch, from `position` on, whose offsets are in `spans`.

    `spans` are ascending and end with `BEYOND`; those before the batch are left out.

    Raises:
        DamagedError, IndexError: they are no records; none that was appended may be
            used.
    """
    # Everything is spelt out in one loop, since a call costs as much as half a record
    # in plain Python. One and two bytes of a varint are read in place, more by
    # `read_varint`. Bounds are checked once a record: an index past the data raises,
    # a slice past it leaves `position` unequal to `end`.
    stop = len(data)
    base_offset = header.base_offset
    last_offset = header.last_offset
    base_timestamp = header.base_timestamp
    max_timestamp = header.max_timestamp
    appended = header.attributes & APPEND_TIME != 0
    timestamp_type = APPENDED if appended else CREATED
    index = 0
    first, last, delivery_count = spans[0]
    due = first  # the next offset that is wanted
    floor = base_offset  # no offset may be lower than this one
    offset = base_offset
    for _ in range(header.count):
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
            raise DamagedError("a record's offset makes no sense")
        offset = base_offset + (number >> 1)
        if offset != due:
            # Behind the start of a span, `due` follows the record before; at its start,
            # `floor` does.
            if (offset < due and due != first) or offset < floor:
                raise DamagedError("the offsets of the records do not ascend")
            while offset > last:
                index += 1
                first, last, delivery_count = spans[index]
            if offset < first:
                if first > last_offset and offset < last_offset:
                    return
                due = first
                floor = offset + 1
                position = end
                continue
            due = offset

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
                raise DamagedError("a key's length makes no sense")
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
                raise DamagedError("a value's length makes no sense")
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
            raise DamagedError("a record does not fill its length")
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
                holder,
            )
        )
        if offset == last:
            index += 1
            first, last, delivery_count = spans[index]
            if first > last_offset and offset < last_offset:
                # The rest of the batch is of no use: much, if few records were
                # acquired out of a big one.
                return
            due = first
            floor = offset + 1
        else:
            due = offset + 1
    if position != stop:
        raise DamagedError("bytes are left over after the last record")
    if offset > last_offset:
        raise DamagedError("a record's offset is beyond the batch's last")


def read_headers(data: bytes, position: int) -> tuple[Headers, int]:
    """Read a record's headers; give them and the position after them."""
    count, position = read_length(data, position)
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        # Bit 7: more bytes follow. Bit 0: negative.
        length = data[position]
        if length & 0x81:
            length, position = read_length(data, position)
        else:
            length >>= 1
            position += 1
        start = position
        position += length
        # Kafka lets any bytes be a name. One that is not UTF-8 must cost nobody a
        # record; its bytes come back by encode("utf-8", "surrogateescape").
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
