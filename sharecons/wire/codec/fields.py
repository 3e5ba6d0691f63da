"""Fields of flexible messages by hand, for the one API that every record passes.

All other APIs are kio's. Its writer and reader cost more than all else that a fetch
costs us; these two, compiled, a tenth of it, and they need no `outline`: no count is
believed that the bytes do not bear out. Kafka's rules for flexible versions (KIP-482):
numbers are big endian; a string, or an array, begins with its length plus one as a
varint, and 0 is null; a structure ends with the number of its tagged fields.
"""

from typing import Final, final

from mypy_extensions import i64

from sharecons.records.primitives import int16_at, int32_at, int64_at

__all__ = ["NO_TAGS", "FieldReader", "text_field", "varint"]

NO_TAGS: Final = b"\0"
NULL: Final = b"\0"

PIECE: Final = 256
"""Bytes of a large frame that are looked at for numbers together: what is between two
partitions' records, as a rule."""

_MOST_BITS: Final[i64] = 35  # of a varint that fits into an int32


def varint(number: int) -> bytes:
    """Write an unsigned number, seven bits a byte, lowest first."""
    if number < 0x80:
        return bytes((number,))
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def text_field(text: str | None) -> bytes:
    if text is None:
        return NULL
    raw = text.encode()
    return varint(len(raw) + 1) + raw


@final
class FieldReader:
    """Reads one field after the other of a frame, from `position` on.

    `sharecons.records.primitives` reads numbers from bytes, so the parts of a view that
    hold numbers are copied.

    Attributes:
        position: of the next field; may be moved.

    Raises, whatever it reads:
        ValueError: the bytes are no such field.
    """

    __slots__ = ("_frame", "_piece", "_piece_at", "_size", "position")

    # The machine's integers, compiled.
    _piece_at: i64
    _size: i64
    position: i64

    def __init__(self, frame: bytes | memoryview, position: int) -> None:
        self._frame = frame
        self._size = len(frame)
        self._piece = frame if isinstance(frame, bytes) else b""
        self._piece_at = 0
        self.position = position

    def int16(self) -> int:
        at = self._reach(2)  # it may turn to another piece
        return int16_at(self._piece, at)

    def int32(self) -> int:
        at = self._reach(4)
        return int32_at(self._piece, at)

    def int64(self) -> int:
        at = self._reach(8)
        return int64_at(self._piece, at)

    def topic_id(self) -> bytes:
        return _copied(self._take(16))

    def text(self) -> str | None:
        length = self.varint() - 1
        return None if length < 0 else _copied(self._take(length)).decode()

    def data(self) -> bytes | memoryview:
        """Give bytes, or a view of them in the frame; none for null."""
        return self._take(max(0, self.varint() - 1))

    def count(self, least: int) -> int:
        """Read how many elements an array has, of at least so many bytes each."""
        count = self.varint() - 1
        if count < 0:
            raise ValueError("null, where an array is to be")
        left = self._size - self.position
        if count * least > left:
            raise ValueError(f"an array of {count}, with {left} bytes left")
        return count

    def varint(self) -> int:
        at = self._reach(1)
        byte: i64 = self._piece[at]
        if byte < 0x80:
            return byte
        number = byte & 0x7F
        shift: i64 = 7
        while shift < _MOST_BITS:
            at = self._reach(1)
            byte = self._piece[at]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
        raise ValueError("a number of more than five bytes")

    def skip_tags(self) -> None:
        """Skip tagged fields: newer brokers may send some."""
        for _ in range(self.varint()):
            self.varint()
            self._take(self.varint())

    def _reach(self, size: i64) -> i64:
        """Move on by so many bytes; gives where they begin in the piece."""
        start = self.position
        at = start - self._piece_at
        self.position = start + size
        if not 0 <= at <= len(self._piece) - size:
            if self.position > self._size:
                raise ValueError("it ends too early")
            # Of a frame of bytes the piece is all.
            self._piece = bytes(self._frame[start : start + PIECE])
            self._piece_at = start
            return 0
        return at

    def _take(self, length: i64) -> bytes | memoryview:
        start = self.position
        stop = start + length
        if stop > self._size:
            raise ValueError("it ends too early")
        self.position = stop
        frame = self._frame
        if isinstance(frame, bytes):
            return frame[start:stop]  # the same, which the compiler does without Python
        return frame[start:stop]


def _copied(data: bytes | memoryview) -> bytes:
    """Do as `bytes`, which compiled code asks Python for."""
    return data if isinstance(data, bytes) else data.tobytes()
