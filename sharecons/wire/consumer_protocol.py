"""What members of classic consumer groups put into their opaque bytes.

ConsumerProtocolSubscription and ConsumerProtocolAssignment, in the old encoding: two
bytes of version, an array of topics, and what newer versions add behind.
"""

from struct import Struct, error
from typing import Final, final

from sharecons._record import TopicPartition

__all__ = ["assigned", "subscribed"]

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")


def subscribed(metadata: bytes) -> tuple[str, ...]:
    """Read the topics of a subscription; none if these bytes are none."""
    try:
        reader = _Reader(metadata)
        return tuple(reader.text() for _ in range(reader.count()))
    except (error, ValueError):
        return ()


def assigned(assignment: bytes) -> tuple[TopicPartition, ...]:
    """Read the partitions of an assignment; none if these bytes are none."""
    try:
        reader = _Reader(assignment)
        return tuple(
            TopicPartition(topic, reader.int32())
            for topic in (reader.text() for _ in range(reader.count()))
            for _ in range(reader.count())
        )
    except (error, ValueError):
        return ()


@final
class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = _INT16.size  # behind the version

    def int32(self) -> int:
        number: int = _INT32.unpack_from(self._data, self._position)[0]
        self._position += _INT32.size
        return number

    def count(self) -> int:
        count = self.int32()
        if not 0 <= count <= len(self._data):
            raise ValueError("no such count")
        return count

    def text(self) -> str:
        length: int = _INT16.unpack_from(self._data, self._position)[0]
        start = self._position + _INT16.size
        self._position = start + length
        if length < 0 or self._position > len(self._data):
            raise ValueError("no such text")
        return self._data[start : self._position].decode()
