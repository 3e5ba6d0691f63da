"""Frames: a length, a header, a body (Kafka's "Protocol Request and Response").

Sizes are checked before anything is read into memory: what claims to be longer
than the limit is not Kafka's, or not meant for us.
"""

from importlib import import_module
from typing import Any, Final

from sharecons.errors import ProtocolError
from sharecons.wire.api import write_entity
from sharecons.wire.api_versions import KEY as API_VERSIONS

__all__ = ["LENGTH_SIZE", "body_offset", "frame_length", "request_frame", "whole"]

LENGTH_SIZE: Final = 4
CORRELATION_SIZE: Final = 4
SHORTEST: Final = CORRELATION_SIZE

_header: Any = import_module("kio.schema.request_header.v2")


def request_frame(
    key: int, version: int, correlation_id: int, client_id: str | None, body: bytes
) -> bytes:
    header = write_entity(
        _header.RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=correlation_id,
            client_id=client_id,
        )
    )
    length = len(header) + len(body)
    return length.to_bytes(LENGTH_SIZE, "big") + header + body


def frame_length(prefix: bytes, limit: int) -> int:
    """Read a frame's length.

    Raises:
        ProtocolError: no response has that length.
    """
    length = int.from_bytes(prefix, "big", signed=True)
    if length < SHORTEST:
        raise ProtocolError(
            f"a frame of {length} bytes: no answer of Kafka's is below {SHORTEST}"
        )
    if length > limit:
        raise ProtocolError(
            f"a frame of {length} bytes, where at most {limit} were to come: this is "
            "no Kafka listener (a TLS or HTTP port?), or max_bytes is too small"
        )
    return length


def body_offset(frame: bytes, key: int, correlation_id: int) -> int:
    """Check a response's header, and give where its body begins.

    Raises:
        ProtocolError: the response is to another request, or no response.
    """
    got = int.from_bytes(frame[:CORRELATION_SIZE], "big", signed=True)
    if got != correlation_id:
        raise ProtocolError(f"an answer to request {got}, where {correlation_id} waits")
    if key == API_VERSIONS:
        return CORRELATION_SIZE  # header version 0, so that any client can read it
    return _after_tags(frame, CORRELATION_SIZE)


def _after_tags(frame: bytes, offset: int) -> int:
    """Skip a header's tagged fields; Kafka sends none to this day."""
    if offset < len(frame) and frame[offset] == 0:
        return offset + 1
    raise ProtocolError("an answer whose header has fields that Kafka does not send")


def whole(received: bytes, length: int) -> bytes:
    """See that a frame was all that came: nobody asked for more.

    Raises:
        ProtocolError: there were bytes after it.
    """
    if len(received) != length:
        raise ProtocolError(
            f"{len(received) - length} bytes after an answer of {length}, unasked for"
        )
    return received
