"""What the demo asks of a broker beside consuming, spelt by hand.

Old versions that every Kafka 4 still serves, and that have no tagged fields (Kafka's
"Protocol Messages"): CreateTopics 4, DeleteTopics 1, DeleteGroups 0, Produce 3,
IncrementalAlterConfigs 0. Only DescribeShareGroupOffsets has no version so old.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

__all__ = [
    "Reply",
    "Request",
    "alter_group",
    "create_topic",
    "delete_group",
    "delete_topic",
    "describe_lag",
    "produce",
]

GROUP: Final = 32
"""ConfigResource.Type.GROUP"""

SET, DELETE = 0, 1
"""AlterConfigOp.OpType"""

ALL_REPLICAS: Final = -1
AS_THE_BROKER_LIKES: Final = -1
ONE: Final = b"\x02"
"""The length of an array of one, as flexible versions have it (KIP-482)."""

NO_TAGS: Final = b"\x00"
PATIENCE: Final = 30_000  # milliseconds that the broker may take


class Reply(NamedTuple):
    """A broker's answer: its error code, its words and its number if it had any."""

    code: int
    message: str | None = None
    number: int = 0


class Request:
    """A request's frame, and how its answer is read."""

    def __init__(
        self, api: str, key: int, version: int, body: bytes, tags: bytes = b""
    ) -> None:
        header = struct.pack(">hhi", key, version, 1) + _string("sharecons-demo")
        self.api = api
        self.frame = _sized(header + tags + body)
        self._key = key

    def read(self, frame: bytes) -> Reply:
        """Read the answer, of one topic or group, from a frame without its length.

        Raises:
            struct.error: these bytes are no such answer.
        """
        return _READERS[self._key](_Answer(frame))


def create_topic(name: str, partitions: int) -> Request:
    # After the numbers: no places of replicas, no configs.
    topic = _string(name)
    topic += struct.pack(">ihii", partitions, AS_THE_BROKER_LIKES, 0, 0)
    limits = struct.pack(">i?", PATIENCE, False)
    return Request("CreateTopics", 19, 4, _array([topic]) + limits)


def delete_topic(name: str) -> Request:
    body = _array([_string(name)]) + struct.pack(">i", PATIENCE)
    return Request("DeleteTopics", 20, 1, body)


def delete_group(group_id: str) -> Request:
    return Request("DeleteGroups", 42, 0, _array([_string(group_id)]))


def alter_group(group_id: str, configs: Mapping[str, str | None]) -> Request:
    """Set a group's configs; those of None become the broker's own again."""
    changes = (
        _string(name)
        + struct.pack(">b", DELETE if value is None else SET)
        + _string(value)
        for name, value in configs.items()
    )
    resource = struct.pack(">b", GROUP) + _string(group_id) + _array(changes)
    body = _array([resource]) + struct.pack(">?", False)
    return Request("IncrementalAlterConfigs", 44, 0, body)


def produce(topic: str, partition: int, batch: bytes) -> Request:
    partitions = _array([struct.pack(">i", partition) + _sized(batch)])
    body = _string(None) + struct.pack(">hi", ALL_REPLICAS, PATIENCE)
    return Request("Produce", 0, 3, body + _array([_string(topic) + partitions]))


def describe_lag(group_id: str, topic: str) -> Request:
    """Ask how many records of partition 0 a group has not settled (KIP-1226)."""
    partitions = ONE + struct.pack(">i", 0) + NO_TAGS
    topics = ONE + _compact(topic) + partitions + NO_TAGS
    body = ONE + _compact(group_id) + topics + NO_TAGS
    return Request("DescribeShareGroupOffsets", 90, 1, body, NO_TAGS)


class _Answer:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._offset = 4  # after the correlation id

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f">{form}", self._content, self._offset)
        self._offset += struct.calcsize(f">{form}")
        return int(value)

    def skip(self, size: int) -> None:
        self._offset += size

    def compact(self) -> None:
        """Pass over a string of a flexible version, as short as our names are."""
        self.skip(self.number("b") - 1)

    def string(self) -> str | None:
        size = self.number("h")
        start = self._offset
        self._offset += max(size, 0)
        return self._content[start : self._offset].decode() if size >= 0 else None


def _created(answer: _Answer) -> Reply:
    _skip_throttle_and_count(answer)
    answer.string()
    return Reply(answer.number("h"), answer.string())


def _deleted(answer: _Answer) -> Reply:
    _skip_throttle_and_count(answer)
    answer.string()
    return Reply(answer.number("h"))


def _altered(answer: _Answer) -> Reply:
    _skip_throttle_and_count(answer)
    return Reply(answer.number("h"), answer.string())


def _produced(answer: _Answer) -> Reply:
    answer.number("i")  # topics
    answer.string()
    answer.number("i")  # partitions
    answer.number("i")
    return Reply(answer.number("h"))


def _described(answer: _Answer) -> Reply:
    answer.number("b")  # tags of the header
    answer.number("i")  # throttle time
    answer.number("b")  # groups
    answer.compact()
    if answer.number("b") != ONE[0]:
        return Reply(answer.number("h"))
    answer.compact()
    answer.skip(16)  # the topic's id
    answer.number("b")  # partitions
    answer.skip(4 + 8 + 4)  # its number, start offset and leader's epoch
    lag = answer.number("q")
    return Reply(answer.number("h"), number=lag)


def _skip_throttle_and_count(answer: _Answer) -> None:
    answer.number("i")
    answer.number("i")


_READERS: Final = {
    0: _produced,
    19: _created,
    20: _deleted,
    42: _deleted,
    44: _altered,
    90: _described,
}


def _string(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    return struct.pack(">h", len(text.encode())) + text.encode()


def _compact(text: str) -> bytes:
    return bytes([len(text.encode()) + 1]) + text.encode()


def _array(items: Iterable[bytes]) -> bytes:
    items = list(items)
    return struct.pack(">i", len(items)) + b"".join(items)


def _sized(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content
