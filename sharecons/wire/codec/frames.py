"""Frames: a length, a header, a body (Kafka's "Protocol Request and Response").

The length is checked before memory is allocated for a response: if it is above the
limit, the peer is probably not a Kafka listener.
"""

import struct
from struct import Struct
from typing import Final

from sharecons.errors import ProtocolError
from sharecons.records.primitives import int32_at
from sharecons.wire.api_versions import KEY as API_VERSIONS
from sharecons.wire.codec.api import Frame
from sharecons.wire.codec.fields import NO_TAGS
from sharecons.wire.sasl_handshake import KEY as SASL_HANDSHAKE

__all__ = [
    "LENGTH_SIZE",
    "body_offset",
    "check_no_extra_bytes",
    "frame_length",
    "request_frame",
]

LENGTH_SIZE: Final = 4
CORRELATION_SIZE: Final = 4
MIN_RESPONSE_SIZE: Final = CORRELATION_SIZE

# Length, RequestApiKey, RequestApiVersion, CorrelationId, and the length of ClientId,
# the only string whose length has two bytes (KIP-511).
_HEADER: Final = Struct(">ihhih")
_INT32: Final = Struct(">i")


def request_frame(
    key: int, version: int, correlation_id: int, client_id: str, body: bytes
) -> bytes:
    """Encode a request with a header of version 2 (for SaslHandshake, version 1).

    Raises:
        ProtocolError: the client id is too long.
    """
    name = client_id.encode()
    tags = b"" if key == SASL_HANDSHAKE else NO_TAGS
    # Without kio, whose writer takes longer than this function, on every fetch.
    length = _HEADER.size - LENGTH_SIZE + len(name) + len(tags) + len(body)
    try:
        header = _HEADER.pack(length, key, version, correlation_id, len(name))
    except struct.error as error:
        raise ProtocolError(f"cannot write a request's header: {error}") from error
    return b"".join((header, name, tags, body))


TLS_RECORDS: Final = (b"\x15\x03", b"\x16\x03")
"""First bytes of an alert and of a handshake, in SSL 3.0 and TLS (RFC 8446, 5.1)."""


def frame_length(prefix: bytes, limit: int) -> int:
    """Return the length in a frame's first bytes.

    Raises:
        ProtocolError: the length is invalid for a response.
    """
    length = int32_at(prefix, 0)
    if length < MIN_RESPONSE_SIZE:
        raise ProtocolError(
            f"invalid frame length {length}: a Kafka response has at least "
            f"{MIN_RESPONSE_SIZE} bytes"
        )
    if length > limit:
        raise ProtocolError(_length_error(prefix, length, limit))
    return length


def _length_error(prefix: bytes, length: int, limit: int) -> str:
    """Return the error message for a length above the limit.

    The bytes may belong to another protocol.
    """
    if prefix[:2] in TLS_RECORDS:
        return (
            "this is not a plaintext Kafka listener but a TLS port: set "
            "security=Security.tls(), or security.protocol=SSL or SASL_SSL"
        )
    if prefix[:4] == b"HTTP":
        return "this is not a Kafka listener but an HTTP port: use another port"
    return (
        f"frame length {length} is above the limit of {limit} bytes: this is not a "
        "Kafka listener, or max_bytes is too small"
    )


def body_offset(frame: Frame, key: int, correlation_id: int) -> int:
    """Check a response's header; return the position of its body.

    Raises:
        ProtocolError: the header is invalid, or belongs to another request.
    """
    if len(frame) < MIN_RESPONSE_SIZE:
        raise ProtocolError(
            f"a response of {len(frame)} bytes is shorter than its header"
        )
    received: int
    if isinstance(frame, bytes):
        received = int32_at(frame, 0)
    else:
        received = _INT32.unpack_from(frame)[0]
    if received != correlation_id:
        raise ProtocolError(
            f"received the response to request {received} instead of {correlation_id}"
        )
    if key in (API_VERSIONS, SASL_HANDSHAKE):
        return CORRELATION_SIZE  # header version 0, without tagged fields
    return _after_tags(frame, CORRELATION_SIZE)


def _after_tags(frame: Frame, offset: int) -> int:
    """Skip a header's tagged fields; so far Kafka does not send any."""
    if offset < len(frame) and frame[offset] == 0:
        return offset + 1
    raise ProtocolError("the response's header contains unknown tagged fields")


def check_no_extra_bytes(received: int, length: int) -> None:
    """Check that nothing was received after a response, since no request is pending.

    Raises:
        ProtocolError: there are bytes after it.
    """
    if received != length:
        raise ProtocolError(
            f"received {received - length} unexpected bytes after a response of "
            f"{length} bytes"
        )
