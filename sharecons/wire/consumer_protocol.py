"""Metadata and assignments of members of classic consumer groups.

These are ConsumerProtocolSubscription and ConsumerProtocolAssignment, in the
non-flexible encoding: two bytes of version, an array of topics, then fields of newer
versions, which are ignored.
"""

from struct import Struct, error
from typing import Final, final

from sharecons._record import TopicPartition

__all__ = ["read_assignment", "read_subscription"]

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")


def read_subscription(metadata: bytes) -> tuple[str, ...]:
    """Return the topics of a subscription; empty if the bytes are invalid."""
    try:
        reader = _Reader(metadata)
        return tuple(reader.text() for _ in range(reader.count()))
    except (error, ValueError):
        return ()


def read_assignment(assignment: bytes) -> tuple[TopicPartition, ...]:
    """Return the partitions of an assignment; empty if the bytes are invalid."""
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
        self._position = _INT16.size  # after the version

    def int32(self) -> int:
        number: int = _INT32.unpack_from(self._data, self._position)[0]
        self._position += _INT32.size
        return number

    def count(self) -> int:
        count = self.int32()
        if not 0 <= count <= len(self._data):
            raise ValueError("invalid count")
        return count

    def text(self) -> str:
        length: int = _INT16.unpack_from(self._data, self._position)[0]
        start = self._position + _INT16.size
        self._position = start + length
        if length < 0 or self._position > len(self._data):
            raise ValueError("invalid length of a string")
        return self._data[start : self._position].decode()
