"""Frames: a length, a header, a body (Kafka's "Protocol Request and Response").

The length is checked before memory is allocated for a response: if it is above the
limit, the peer is probably not a Kafka listener. `FrameBuffer` splits received bytes
into frames, without I/O and without copying large ones.
"""

import struct
from struct import Struct
from typing import Final, final

from sharecons.errors import ProtocolError
from sharecons.records.batch_header import int32_at
from sharecons.wire.codec import frames
from sharecons.wire.codec.api import API_VERSIONS_KEY, SASL_HANDSHAKE_KEY, Frame
from sharecons.wire.codec.fields import NO_TAGS
from sharecons.wire.codec.frame_memory import FrameMemory

__all__ = [
    "FRAME_LIMIT",
    "LENGTH_SIZE",
    "FrameBuffer",
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
    tags = b"" if key == SASL_HANDSHAKE_KEY else NO_TAGS
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

    The bytes might belong to another protocol.
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
    if key in (API_VERSIONS_KEY, SASL_HANDSHAKE_KEY):
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


FRAME_LIMIT: Final = 256 << 20
"""Longest response in bytes: max_bytes (8 MiB by default) is a soft limit, and one
record batch can exceed it."""

FIRST_SIZE: Final = 128 << 10
"""Bytes received before the frame's length is known. 500 records of 200 bytes fit: a
second look at the socket takes longer than copying them."""

SMALL_SIZE: Final = 4 << 10
"""The length up to which a frame is bytes. Reading bytes is faster than reading a
memoryview, but the records of a larger frame would be copied out of bytes."""

PREALLOCATION_LIMIT: Final = 16 << 20
"""Largest buffer allocated from the length alone. It grows as more bytes arrive."""

_MEMORY: Final = FrameMemory()
"""All connections share it, so that a hundred consumers keep no more than one."""


@final
class FrameBuffer:
    """The frames of one connection, one after the other.

    Frames that fit in FIRST_SIZE are copied. Longer ones are received into memory that
    no other frame uses.
    """

    __slots__ = ("_first", "_length", "_received", "_writable")

    def __init__(self) -> None:
        self._first = memoryview(bytearray(FIRST_SIZE))
        self._begin()

    @property
    def received(self) -> int:
        """How many bytes of an incomplete frame have arrived."""
        return self._received

    def writable(self) -> memoryview:
        """Return the memory for the next bytes; never empty."""
        if self._received == len(self._writable):
            self._grow()
        return self._writable[self._received :]

    def advance(self, size: int) -> Frame | None:
        """Count `size` bytes written to `writable()`; return the frame once complete.

        Raises:
            ProtocolError: the length is invalid, or more bytes follow the frame.
        """
        self._received += size
        if self._length < 0:
            return self._on_first_bytes()
        if self._received < self._length:
            return None
        frame = self._writable
        self._begin()
        return frame

    def _begin(self) -> None:
        self._writable = self._first
        self._received = 0
        self._length = -1  # unknown

    def _on_first_bytes(self) -> Frame | None:
        received = self._received
        if received < frames.LENGTH_SIZE:
            return None
        prefix = self._first[: frames.LENGTH_SIZE].tobytes()
        length = frames.frame_length(prefix, FRAME_LIMIT)
        size = frames.LENGTH_SIZE + length
        if received < size:
            if size > FIRST_SIZE:
                start = self._first[frames.LENGTH_SIZE : received]
                self._length, self._received = length, len(start)
                self._writable = _MEMORY.take(min(length, PREALLOCATION_LIMIT))
                self._writable[: len(start)] = start
            return None
        frames.check_no_extra_bytes(received - frames.LENGTH_SIZE, length)
        self._begin()
        frame = self._first[frames.LENGTH_SIZE : size].tobytes()
        return frame if length <= SMALL_SIZE else memoryview(frame)

    def _grow(self) -> None:
        """Enlarge the buffer of a frame longer than PREALLOCATION_LIMIT."""
        grown = memoryview(bytearray(min(self._length, 2 * self._received)))
        grown[: self._received] = self._writable
        self._writable = grown
