"""What a module of this package provides for one API of Kafka's.

Each module has one `Api`: its key, the versions it speaks, and two functions
between the protocol's values and kio's entities of a version. Every version in
use is a flexible one, so request headers are of version 2 and response headers
of version 1 throughout (ApiVersions differs, see there).
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, Generic, TypeVar

from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError

from sharecons.errors import ProtocolError
from sharecons.wire.codec.kio_guard import untagged
from sharecons.wire.codec.kio_schemas import widened

__all__ = ["Api", "Frame", "milliseconds", "read_entity", "seconds", "write_entity"]

RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")

Frame = bytes | memoryview
"""A frame without its length, as it was received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api(Generic[RequestT, AnswerT]):
    """One API: `write` makes a request's body, `read` an answer from a response's."""

    key: int
    name: str
    versions: range
    write: Callable[[RequestT, int], bytes]
    read: Callable[[Frame, int, int], AnswerT]
    since: str = ""
    """The first Kafka that serves it, for the error of one that does not."""


_writer: Any = cache(entity_writer)


@cache
def _reader(kind: Any) -> Any:
    return entity_reader(widened(kind))


def write_entity(entity: Any) -> bytes:
    """Make the bytes of one of kio's entities."""
    buffer = io.BytesIO()
    try:
        _writer(type(entity))(buffer, entity)
    except (SerialError, ValueError, TypeError, OverflowError) as error:
        what = type(entity).__name__
        raise ProtocolError(f"cannot write {what}: {error!r}") from error
    return buffer.getvalue()


def read_entity(kind: Any, frame: Frame, offset: int) -> Any:
    """Read one of kio's entities from a frame's bytes, to the frame's last byte.

    Raises:
        ProtocolError: the bytes are no such entity, too few or too many.
    """
    try:
        frame = untagged(widened(kind), bytes(frame), offset)
        entity, size = _reader(kind)(frame, offset)
    except Exception as error:  # the codec is native: whatever it raises is garbage
        what = kind.__module__.removeprefix("kio.schema.")
        raise ProtocolError(
            f"the broker's answer is not a {what}: {type(error).__name__}: {error}"
        ) from error
    if offset + size != len(frame):
        extra = len(frame) - offset - size
        what = kind.__module__.removeprefix("kio.schema.")
        raise ProtocolError(f"the broker's answer has {extra} bytes beyond its {what}")
    return entity


def milliseconds(seconds: float) -> timedelta:
    """Seconds as kio takes milliseconds, rounded and within an int32."""
    return timedelta(milliseconds=min(round(seconds * 1000), 0x7FFFFFFF))


def seconds(duration: timedelta) -> float:
    return duration.total_seconds()
