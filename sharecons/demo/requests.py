"""The demo's admin requests, encoded by hand.

They use old versions that every Kafka 4 still supports and that have no tagged fields
(Kafka's "Protocol Messages"): CreateTopics 4, DeleteTopics 1, DeleteGroups 0,
IncrementalAlterConfigs 0. Only DescribeShareGroupOffsets has no version
without tagged fields.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

__all__ = [
    "Request",
    "Response",
    "alter_group",
    "create_topic",
    "delete_group",
    "delete_topic",
    "describe_lag",
]

GROUP: Final = 32
"""ConfigResource.Type.GROUP"""

SET, DELETE = 0, 1
"""AlterConfigOp.OpType"""

BROKER_DEFAULT: Final = -1
COMPACT_LENGTH_ONE: Final = b"\x02"
"""The length of an array of one item in flexible versions (KIP-482)."""

NO_TAGS: Final = b"\x00"
TIMEOUT_MS: Final = 30_000  # for the broker


class Response(NamedTuple):
    """The error code of a response, with its message and lag if it has them."""

    code: int
    message: str | None = None
    lag: int = 0


class Request:
    """A request frame and the decoder of its response."""

    def __init__(
        self, api: str, key: int, version: int, body: bytes, tags: bytes = b""
    ) -> None:
        header = struct.pack(">hhi", key, version, 1) + _string("sharecons-demo")
        self.api = api
        self.frame = _with_length(header + tags + body)
        self._key = key

    def read(self, frame: bytes) -> Response:
        """Decode the response for one topic or group, from a frame without its length.

        Raises:
            struct.error: the bytes are not a valid response.
        """
        return _READERS[self._key](_ResponseReader(frame))


def create_topic(name: str, partitions: int) -> Request:
    # The two zeros: no replica assignments and no configs.
    topic = _string(name)
    topic += struct.pack(">ihii", partitions, BROKER_DEFAULT, 0, 0)
    limits = struct.pack(">i?", TIMEOUT_MS, False)
    return Request("CreateTopics", 19, 4, _array([topic]) + limits)


def delete_topic(name: str) -> Request:
    body = _array([_string(name)]) + struct.pack(">i", TIMEOUT_MS)
    return Request("DeleteTopics", 20, 1, body)


def delete_group(group_id: str) -> Request:
    return Request("DeleteGroups", 42, 0, _array([_string(group_id)]))


def alter_group(group_id: str, configs: Mapping[str, str | None]) -> Request:
    """Set configs of a group; None resets one to the broker's default."""
    changes = (
        _string(name)
        + struct.pack(">b", DELETE if value is None else SET)
        + _string(value)
        for name, value in configs.items()
    )
    resource = struct.pack(">b", GROUP) + _string(group_id) + _array(changes)
    body = _array([resource]) + struct.pack(">?", False)
    return Request("IncrementalAlterConfigs", 44, 0, body)


def describe_lag(group_id: str, topic: str) -> Request:
    """Request the lag of a group in partition 0 (KIP-1226)."""
    partitions = COMPACT_LENGTH_ONE + struct.pack(">i", 0) + NO_TAGS
    topics = COMPACT_LENGTH_ONE + _compact(topic) + partitions + NO_TAGS
    body = COMPACT_LENGTH_ONE + _compact(group_id) + topics + NO_TAGS
    return Request("DescribeShareGroupOffsets", 90, 1, body, NO_TAGS)


class _ResponseReader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._offset = 4  # after the correlation id

    def read_number(self, struct_format: str) -> int:
        (value,) = struct.unpack_from(f">{struct_format}", self._content, self._offset)
        self._offset += struct.calcsize(f">{struct_format}")
        return int(value)

    def skip(self, size: int) -> None:
        self._offset += size

    def skip_compact_string(self) -> None:
        """Skip a string of a flexible version that is shorter than 127 bytes."""
        self.skip(self.read_number("b") - 1)

    def read_string(self) -> str | None:
        size = self.read_number("h")
        start = self._offset
        self._offset += max(size, 0)
        return self._content[start : self._offset].decode() if size >= 0 else None


def _read_create_topics(response: _ResponseReader) -> Response:
    _skip_throttle_and_count(response)
    response.read_string()
    return Response(response.read_number("h"), response.read_string())


def _read_delete(response: _ResponseReader) -> Response:
    _skip_throttle_and_count(response)
    response.read_string()
    return Response(response.read_number("h"))


def _read_alter_configs(response: _ResponseReader) -> Response:
    _skip_throttle_and_count(response)
    return Response(response.read_number("h"), response.read_string())


def _read_describe_offsets(response: _ResponseReader) -> Response:
    response.read_number("b")  # tagged fields of the header
    response.read_number("i")  # throttle time
    response.read_number("b")  # groups
    response.skip_compact_string()
    if response.read_number("b") != COMPACT_LENGTH_ONE[0]:
        return Response(response.read_number("h"))
    response.skip_compact_string()
    response.skip(16)  # topic id
    response.read_number("b")  # partitions
    response.skip(4 + 8 + 4)  # partition, start offset, leader epoch
    lag = response.read_number("q")
    return Response(response.read_number("h"), lag=lag)


def _skip_throttle_and_count(response: _ResponseReader) -> None:
    response.read_number("i")
    response.read_number("i")


_READERS: Final = {
    19: _read_create_topics,
    20: _read_delete,
    42: _read_delete,
    44: _read_alter_configs,
    90: _read_describe_offsets,
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


def _with_length(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content
