"""Encodes and decodes fields of flexible messages without kio (ShareFetch and Fetch).

Other APIs use kio. kio takes longer than the rest of a fetch; this module, compiled, a
tenth of that. It does not need `kio_guard`, because it checks counts itself. Kafka's
rules for flexible versions (KIP-482): numbers are big endian; a string or an array
begins with its length plus one as a varint, and 0 is null; a structure ends with the
number of its tagged fields.
"""

from math import ceil
from typing import Final, final

from mypy_extensions import i64

from sharecons.records.batch_header import int16_at, int32_at, int64_at

__all__ = ["NO_TAGS", "FieldReader", "milliseconds", "text_field", "varint"]

NO_TAGS: Final = b"\0"
NULL: Final = b"\0"
INT32_MAX: Final = 0x7FFFFFFF

CHUNK_SIZE: Final = 256
"""Bytes copied at a time from a frame that is a memoryview. Usually this covers all
fields between the records of two partitions."""

_MAX_BITS: Final[i64] = 35  # in the five bytes of a varint that fits into an int32


def varint(number: int) -> bytes:
    """Encode an unsigned number: seven bits per byte, lowest first."""
    if number < 0x80:
        return bytes((number,))
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def milliseconds(seconds: float) -> int:
    """Return a time to wait in milliseconds, at most an int32, rounded up.

    With half a millisecond rounded to 0, a broker would respond immediately, and the
    request would be repeated in a tight loop until the half has passed.
    """
    return min(ceil(seconds * 1000 - 1e-6), INT32_MAX)


def text_field(text: str | None) -> bytes:
    if text is None:
        return NULL
    raw = text.encode()
    return varint(len(raw) + 1) + raw


@final
class FieldReader:
    """A reader of consecutive fields in a frame, starting at `position`.

    `sharecons.records.batch_header` reads numbers from bytes, so chunks of a memoryview
    are copied. All methods raise ValueError if the bytes are invalid.

    Attributes:
        position: the position of the next field; can be assigned.
    """

    __slots__ = ("_chunk", "_chunk_start", "_frame", "_size", "position")

    # Native integers in compiled code.
    _chunk_start: i64
    _size: i64
    position: i64

    def __init__(self, frame: bytes | memoryview, position: int) -> None:
        self._frame = frame
        self._size = len(frame)
        self._chunk = frame if isinstance(frame, bytes) else b""
        self._chunk_start = 0
        self.position = position

    def int16(self) -> int:
        at = self._advance(2)  # can replace self._chunk, so call it first
        return int16_at(self._chunk, at)

    def int32(self) -> int:
        at = self._advance(4)
        return int32_at(self._chunk, at)

    def int64(self) -> int:
        at = self._advance(8)
        return int64_at(self._chunk, at)

    def topic_id(self) -> bytes:
        return _to_bytes(self._take(16))

    def text(self) -> str | None:
        length = self.varint() - 1
        return None if length < 0 else _to_bytes(self._take(length)).decode()

    def data(self) -> bytes | memoryview:
        """Return bytes, or a view of them in the frame; empty for null."""
        return self._take(max(0, self.varint() - 1))

    def count(self, min_size: int) -> int:
        """Return the number of elements of an array.

        Raises:
            ValueError: the array is null, or the frame is too short for that many
                elements of at least `min_size` bytes.
        """
        count = self.varint() - 1
        if count < 0:
            raise ValueError("an array is null")
        left = self._size - self.position
        if count * min_size > left:
            raise ValueError(f"an array of {count} elements, but {left} bytes are left")
        return count

    def varint(self) -> int:
        at = self._advance(1)
        byte: i64 = self._chunk[at]
        if byte < 0x80:
            return byte
        number = byte & 0x7F
        shift: i64 = 7
        while shift < _MAX_BITS:
            at = self._advance(1)
            byte = self._chunk[at]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
        raise ValueError("a varint has more than five bytes")

    def skip_tags(self) -> None:
        """Skip tagged fields, which newer brokers can send."""
        for _ in range(self.varint()):
            self.varint()
            self._take(self.varint())

    def _advance(self, size: i64) -> i64:
        """Advance by `size` bytes; return their position in the chunk."""
        start = self.position
        at = start - self._chunk_start
        self.position = start + size
        if not 0 <= at <= len(self._chunk) - size:
            if self.position > self._size:
                raise ValueError("the message is truncated")
            # Only for a memoryview: bytes are one chunk.
            self._chunk = bytes(self._frame[start : start + CHUNK_SIZE])
            self._chunk_start = start
            return 0
        return at

    def _take(self, length: i64) -> bytes | memoryview:
        start = self.position
        stop = start + length
        if stop > self._size:
            raise ValueError("the message is truncated")
        self.position = stop
        frame = self._frame
        if isinstance(frame, bytes):
            return frame[start:stop]  # the same; compiled to native code for bytes
        return frame[start:stop]


def _to_bytes(data: bytes | memoryview) -> bytes:
    """Return the data as bytes; in compiled code faster than calling `bytes`."""
    return data if isinstance(data, bytes) else data.tobytes()
