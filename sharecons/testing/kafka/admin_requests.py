"""The two requests that a launcher needs, encoded by hand.

Metadata 1 and CreateTopics 2: old versions without tagged fields, which Kafka 4 still
supports (Kafka's "Protocol Messages").
"""

import socket
import struct
from typing import Final

from sharecons.testing.kafka.errors import LaunchError

__all__ = ["Address", "create_topic", "registered_brokers"]

Address = tuple[str, int]

METADATA: Final = (3, 1)
CREATE_TOPICS: Final = (19, 2)
RESPONSE_TIMEOUT: Final = 5.0  # seconds for one response
CREATE_TIMEOUT: Final = 30.0  # seconds for the controller to create a topic


def registered_brokers(address: Address) -> frozenset[int]:
    """Return the brokers that a broker knows of; none if it does not respond."""
    try:
        response = _request(address, METADATA, struct.pack(">i", 0), RESPONSE_TIMEOUT)
    except (OSError, struct.error):
        return frozenset()
    (count,) = response.unpack(">i")
    return frozenset(_broker(response) for _ in range(count))


def create_topic(address: Address, name: str, partitions: int, replicas: int) -> None:
    """Create a topic.

    Raises:
        LaunchError: Kafka has rejected the topic.
    """
    topic = _string(name) + struct.pack(">ihii", partitions, replicas, 0, 0)
    limits = struct.pack(">i?", int(CREATE_TIMEOUT * 1000), False)  # validate_only
    body = struct.pack(">i", 1) + topic + limits
    response = _request(address, CREATE_TOPICS, body, CREATE_TIMEOUT + RESPONSE_TIMEOUT)
    response.unpack(">ii")  # throttle time, number of topics
    response.string()
    (code,) = response.unpack(">h")
    if code:
        raise LaunchError(
            f"topic {name} could not be created: {response.string()} ({code})"
        )


class _Response:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._offset = 4  # after the correlation id

    def unpack(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(form, self._content, self._offset)
        self._offset += struct.calcsize(form)
        return values

    def string(self) -> str | None:
        (size,) = self.unpack(">h")
        start = self._offset
        self._offset += max(size, 0)
        return self._content[start : self._offset].decode() if size >= 0 else None


def _broker(response: _Response) -> int:
    (node_id,) = response.unpack(">i")
    response.string()  # host
    response.unpack(">i")  # port
    response.string()  # rack
    return node_id


def _request(
    address: Address, api: tuple[int, int], body: bytes, timeout: float
) -> _Response:
    request = struct.pack(">hhi", *api, 1) + _string("sharecons-testing") + body
    with socket.create_connection(address, timeout=timeout) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _receive(connection, 4))
        return _Response(_receive(connection, size))


def _receive(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        chunk = connection.recv(size - len(content))
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        content += chunk
    return content


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()
