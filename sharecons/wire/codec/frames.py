"""Frames: a length, a header, a body (Kafka's "Protocol Request and Response").

Sizes are checked before anything is read into memory: what claims to be longer
than the limit is not Kafka's, or not meant for us.
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
    "check_alone",
    "frame_length",
    "request_frame",
]

LENGTH_SIZE: Final = 4
CORRELATION_SIZE: Final = 4
SHORTEST: Final = CORRELATION_SIZE

# Length, RequestApiKey, RequestApiVersion, CorrelationId, and the length of ClientId,
# which is the one string with two bytes for it (KIP-511).
_HEADER: Final = Struct(">ihhih")
_INT32: Final = Struct(">i")


def request_frame(
    key: int, version: int, correlation_id: int, client_id: str, body: bytes
) -> bytes:
    """Write a request, with its header of version 2; of SaslHandshake it is 1.

    Raises:
        ProtocolError: the client id is too long.
    """
    name = client_id.encode()
    tags = b"" if key == SASL_HANDSHAKE else NO_TAGS
    # By hand, since each fetch has one: kio's writer takes longer than all of this.
    length = _HEADER.size - LENGTH_SIZE + len(name) + len(tags) + len(body)
    try:
        header = _HEADER.pack(length, key, version, correlation_id, len(name))
    except struct.error as error:
        raise ProtocolError(f"cannot write a request's header: {error}") from error
    return b"".join((header, name, tags, body))


TLS_RECORDS: Final = (b"\x15\x03", b"\x16\x03")
"""An alert and a handshake, of SSL 3.0 and all versions of TLS (RFC 8446, 5.1)."""


def frame_length(begun: bytes, limit: int) -> int:
    """Read the length that a frame begins with.

    Raises:
        ProtocolError: no response has that length.
    """
    length = int32_at(begun, 0)
    if length < SHORTEST:
        raise ProtocolError(
            f"a frame of {length} bytes: no answer of Kafka's is below {SHORTEST}"
        )
    if length > limit:
        raise ProtocolError(_not_kafka(begun, length, limit))
    return length


def _not_kafka(begun: bytes, length: int, limit: int) -> str:
    """Return the error for a length that other protocols' first bytes make."""
    if begun[:2] in TLS_RECORDS:
        return (
            "this is no Kafka listener for plain connections but a TLS port: set "
            "security=Security.tls(), or security.protocol=SSL or SASL_SSL"
        )
    if begun[:4] == b"HTTP":
        return "this is no Kafka listener but an HTTP port: use another port"
    return (
        f"a frame of {length} bytes, where at most {limit} were to come: this is no "
        "Kafka listener, or max_bytes is too small"
    )


def body_offset(frame: Frame, key: int, correlation_id: int) -> int:
    """Check a response's header, and give where its body begins.

    Raises:
        ProtocolError: the response is to another request, or no response.
    """
    if len(frame) < SHORTEST:
        raise ProtocolError(
            f"a frame of {len(frame)} bytes, where {SHORTEST} are least"
        )
    got: int
    if isinstance(frame, bytes):
        got = int32_at(frame, 0)
    else:
        got = _INT32.unpack_from(frame)[0]
    if got != correlation_id:
        raise ProtocolError(f"an answer to request {got}, where {correlation_id} waits")
    if key in (API_VERSIONS, SASL_HANDSHAKE):
        return CORRELATION_SIZE  # header version 0, which any client can read
    return _after_tags(frame, CORRELATION_SIZE)


def _after_tags(frame: Frame, offset: int) -> int:
    """Skip a header's tagged fields; Kafka sends none to this day."""
    if offset < len(frame) and frame[offset] == 0:
        return offset + 1
    raise ProtocolError("an answer whose header has fields that Kafka does not send")


def check_alone(received: int, length: int) -> None:
    """See that a frame of this length was all that came: nobody asked for more.

    Raises:
        ProtocolError: there were bytes after it.
    """
    if received != length:
        raise ProtocolError(
            f"{received - length} bytes after an answer of {length}, unasked for"
        )
