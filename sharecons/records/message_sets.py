"""Messages of formats 0 and 1, which Kafka wrote before version 0.11.

Kafka 4 cannot write them, but the logs of upgraded clusters still contain them, and
consumers receive them unchanged. A message:

    offset         int64
    message size   int32     number of bytes after this field
    crc            uint32    CRC-32 (zlib) of the bytes after this field
    magic          int8      0 or 1
    attributes     int8      codec in bits 0 to 2; format 1: LogAppendTime in bit 3
    timestamp      int64     format 1 only
    key            int32 length, bytes; length -1 is null
    value          int32 length, bytes; length -1 is null

A message with a codec is a wrapper: its value is a compressed sequence of messages, and
its offset is the offset of the last of these. The offsets in a wrapper of format 0 are
absolute. In format 1 they are relative: the last one is the wrapper's offset. If a
wrapper of format 1 has LogAppendTime, its timestamp is the timestamp of all its
messages.

`to_batch` converts a message to a batch of format 2, so that both decoders read all
formats. A message of format 0 has no timestamp; the batch has -1, as a record of format
2 without a timestamp has.
"""

from typing import Final, final
from zlib import crc32

from sharecons.records.batch_header import (
    APPEND_TIME,
    CODEC_MASK,
    LENGTH_END,
    SMALLEST_LENGTH,
    Header,
    int32_at,
    int64_at,
    uint32_at,
)
from sharecons.records.compression import LIMIT, Codec, decompress
from sharecons.records.encoder import NewRecord, encode
from sharecons.records.errors import DamagedError
from sharecons.records.lz4_header import with_header_checksum

__all__ = ["LAST_MAGIC", "check_message", "message_count", "to_batch"]

LAST_MAGIC: Final = 1
"""The last format of messages; later formats are batches."""

NO_TIMESTAMP: Final = -1
CRC_AT: Final = 12
CRC_END: Final = 16

MAX_DEPTH: Final = 4
"""Wrappers in wrappers. Kafka writes one level; its first versions accepted more."""

MAX_DELTA: Final = (1 << 31) - 1
"""The maximum of an offset delta in format 2."""


@final
class Message:
    """A decoded message; `value` of a wrapper is compressed."""

    __slots__ = ("attributes", "key", "magic", "offset", "timestamp", "value")

    def __init__(self, data: bytes, position: int) -> None:
        """Decode the message at `position`, without its checksum and length.

        Raises:
            DamagedError, IndexError: the message is invalid.
        """
        self.offset = int64_at(data, position)
        end = position + LENGTH_END + int32_at(data, position + 8)
        self.magic = data[position + 16]
        self.attributes = data[position + 17]
        self.timestamp = NO_TIMESTAMP
        at = position + 18
        if self.magic:
            self.timestamp = int64_at(data, at)
            at += 8
        self.key, at = _read_bytes(data, at)
        self.value, at = _read_bytes(data, at)
        if at != end:
            raise DamagedError("a message's fields do not match its size")

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK


def to_batch(data: bytes) -> bytes:
    """Convert a message, or the messages in a wrapper, to a batch of format 2.

    The batch is not compressed. Its last offset is the message's offset.

    Raises:
        DamagedError: the message or a message in it is damaged.
    """
    try:
        check_message(data)
        wrapper = Message(data, 0)
        messages, _ = _unwrap(wrapper, LIMIT, MAX_DEPTH)
    except IndexError:
        raise DamagedError("a message ends within a field") from None
    first, last = messages[0].offset, wrapper.offset
    if not 0 <= first <= last <= first + MAX_DELTA:
        raise DamagedError("the batch has invalid offsets")
    is_append_time = wrapper.magic and wrapper.attributes & APPEND_TIME
    return encode(
        [_new_record(message, first) for message in messages],
        base_offset=first,
        last_offset_delta=last - first,
        append_timestamp=wrapper.timestamp if is_append_time else None,
    )


def check_message(data: bytes, position: int = 0) -> int:
    """Verify the size and the checksum of a message; return the position after it.

    Raises:
        DamagedError: one of them is wrong.
        IndexError: the data ends within the message's first fields.
    """
    size = int32_at(data, position + 8)
    end = position + LENGTH_END + size
    if size < SMALLEST_LENGTH or end > len(data):
        raise DamagedError(f"a message has an invalid size: {size} bytes")
    magic = data[position + CRC_END]
    if magic > LAST_MAGIC:
        raise DamagedError(f"unknown message format {magic}")
    if crc32(data[position + CRC_END : end]) != uint32_at(data, position + CRC_AT):
        raise DamagedError("the checksum does not match")
    return end


def message_count(header: Header, previous: int) -> int:
    """Return the number of records in a message, without decompressing it.

    For a compressed message this follows from the offset of the previous message. If
    that is unknown (-1), so is the number: return 0.
    """
    attributes = header.crc >> 24  # where batches have their checksum
    if not attributes & CODEC_MASK:
        return 1
    return header.base_offset - previous if previous >= 0 else 0


def _new_record(message: Message, first: int) -> NewRecord:
    delta = message.offset - first
    return NewRecord(message.key, message.value, (), message.timestamp, delta)


def _unwrap(message: Message, limit: int, depth: int) -> tuple[list[Message], int]:
    """Return the messages in a wrapper, or the message itself.

    Also returns how many bytes of the limit remain.
    """
    if not message.codec:
        return [message], limit
    if not depth:
        raise DamagedError(f"compressed messages are nested more than {MAX_DEPTH} deep")
    data = _decompress(message, limit)
    limit -= len(data)
    messages: list[Message] = []
    for inner in _with_absolute_offsets(message, _read_messages(data)):
        unwrapped, limit = _unwrap(inner, limit, depth - 1)
        messages += unwrapped
    return messages, limit


def _decompress(wrapper: Message, limit: int) -> bytes:
    value = wrapper.value
    if value is None:
        raise DamagedError("a compressed message has no value")
    if wrapper.codec == Codec.ZSTD:
        raise DamagedError("zstd is invalid in formats 0 and 1")
    if wrapper.codec == Codec.LZ4 and not wrapper.magic:
        value = with_header_checksum(value)
    return decompress(wrapper.codec, value, limit)


def _read_messages(data: bytes) -> list[Message]:
    messages: list[Message] = []
    position = 0
    while position < len(data):
        end = check_message(data, position)
        messages.append(Message(data, position))
        position = end
    if not messages:
        raise DamagedError("a compressed message contains no messages")
    return messages


def _with_absolute_offsets(wrapper: Message, messages: list[Message]) -> list[Message]:
    if wrapper.magic:
        base = wrapper.offset - messages[-1].offset
        for message in messages:
            message.offset += base
    return messages


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    """Return nullable bytes and the position after them."""
    length = int32_at(data, position)
    position += 4
    if length == -1:
        return None, position
    if length < 0:
        raise DamagedError("a key or a value has an invalid length")
    return data[position : position + length], position + length
