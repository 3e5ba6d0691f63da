"""`Api`, which a module of `sharecons.wire` provides for one API of Kafka.

It has the API's key, the supported versions, and functions that encode a request and
decode a response. All versions in use are flexible, so request headers have version 2
and response headers version 1 (except for ApiVersions and SaslHandshake).
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, Final, Generic, NamedTuple, TypeVar

from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError

from sharecons.errors import ProtocolError
from sharecons.wire.codec.kio_guard import strip_tagged_fields
from sharecons.wire.codec.kio_schemas import widen

__all__ = [
    "API_VERSIONS_KEY",
    "SASL_HANDSHAKE_KEY",
    "Api",
    "Frame",
    "VersionRange",
    "milliseconds",
    "read_entity",
    "seconds",
    "write_entity",
]

SASL_HANDSHAKE_KEY: Final = 17
API_VERSIONS_KEY: Final = 18
"""The APIs whose headers have other versions."""

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")

Frame = bytes | memoryview
"""A received frame without its length prefix."""


class VersionRange(NamedTuple):
    """The versions of an API that a broker supports."""

    lowest: int
    highest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Api(Generic[RequestT, ResponseT]):
    """One API: `write` encodes the body of a request, `read` decodes a response's."""

    key: int
    name: str
    versions: range
    write: Callable[[RequestT, int], bytes]
    read: Callable[[Frame, int, int], ResponseT]
    since: str = ""
    """The first Kafka version with this API, for an error message; "" for old APIs."""


_writer: Any = cache(entity_writer)


@cache
def _reader(kind: Any) -> Any:
    return entity_reader(widen(kind))


def write_entity(entity: Any) -> bytes:
    """Encode an entity of kio.

    Raises:
        ProtocolError: a field's value cannot be encoded.
    """
    buffer = io.BytesIO()
    try:
        _writer(type(entity))(buffer, entity)
    except (SerialError, ValueError, TypeError, OverflowError) as error:
        what = type(entity).__name__
        raise ProtocolError(f"cannot write {what}: {error!r}") from error
    return buffer.getvalue()


def read_entity(kind: Any, frame: Frame, offset: int) -> Any:
    """Decode an entity of kio from `offset` to the end of the frame.

    Raises:
        ProtocolError: the bytes are invalid, too few or too many.
    """
    try:
        frame = strip_tagged_fields(widen(kind), bytes(frame), offset)
        entity, size = _reader(kind)(frame, offset)
    except Exception as error:  # the codec is native and can raise any exception
        raise ProtocolError(
            f"invalid {_api_name(kind)} response: {type(error).__name__}: {error}"
        ) from error
    if offset + size != len(frame):
        extra = len(frame) - offset - size
        raise ProtocolError(
            f"invalid {_api_name(kind)} response: {extra} bytes after its end"
        )
    return entity


def _api_name(kind: Any) -> str:
    name: str = kind.__name__
    return name.removesuffix("Response")


def milliseconds(seconds: float) -> timedelta:
    """Convert seconds for kio: rounded to milliseconds, limited to an int32."""
    return timedelta(milliseconds=min(round(seconds * 1000), 0x7FFFFFFF))


def seconds(duration: timedelta) -> float:
    return duration.total_seconds()
