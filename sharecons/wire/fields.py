"""Fields of flexible messages by hand, for the one API that every record passes.

All other APIs are kio's. Its writer and reader cost more than all else that a fetch
costs us; these two, compiled, a tenth of it, and they need no `outline`: no count is
believed that the bytes do not bear out. Kafka's rules for flexible versions (KIP-482):
numbers are big endian; a string, or an array, begins with its length plus one as a
varint, and 0 is null; a structure ends with the number of its tagged fields.
"""

from struct import Struct
from typing import Final, final

__all__ = ["NO_TAGS", "FieldReader", "text_field", "varint"]

NO_TAGS: Final = b"\0"
NULL: Final = b"\0"

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_MOST_BITS: Final = 35  # of a varint that fits into an int32


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

    Raises, whatever it reads:
        ValueError, IndexError, struct.error: the bytes are no such field.
    """

    __slots__ = ("_frame", "position")

    def __init__(self, frame: memoryview, position: int) -> None:
        self._frame = frame
        self.position = position

    def int16(self) -> int:
        number: int = _INT16.unpack_from(self._frame, self.position)[0]
        self.position += 2
        return number

    def int32(self) -> int:
        number: int = _INT32.unpack_from(self._frame, self.position)[0]
        self.position += 4
        return number

    def topic_id(self) -> bytes:
        return self._take(16).tobytes()

    def text(self) -> str | None:
        length = self.varint() - 1
        return None if length < 0 else self._take(length).tobytes().decode()

    def data(self) -> memoryview:
        """Give bytes as they lie in the frame; none for null."""
        return self._take(max(0, self.varint() - 1))

    def count(self, least: int) -> int:
        """Read how many elements an array has, of at least so many bytes each."""
        count = self.varint() - 1
        if count < 0:
            raise ValueError("null, where an array is to be")
        left = len(self._frame) - self.position
        if count * least > left:
            raise ValueError(f"an array of {count}, with {left} bytes left")
        return count

    def varint(self) -> int:
        frame = self._frame
        number: int = frame[self.position]
        self.position += 1
        if number < 0x80:
            return number
        number &= 0x7F
        shift = 7
        while shift < _MOST_BITS:
            byte: int = frame[self.position]
            self.position += 1
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

    def _take(self, length: int) -> memoryview:
        start, stop = self.position, self.position + length
        if stop > len(self._frame):
            raise ValueError("it ends too early")
        self.position = stop
        return self._frame[start:stop]
