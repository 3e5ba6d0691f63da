"""Checks the counts of arrays in a request before kio reads it.

kio allocates memory for as many elements as a count says. If there is not that much, it
ends the process, and with it the test. The broker shares no code with the client, whose
`wire.codec.kio_guard` does the same for responses.
"""

from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, Final, TypeAlias, get_args, get_origin

__all__ = ["check_counts"]

Skip: TypeAlias = Callable[[bytes, int], int]
"""Returns the end of what begins at a position in the frame."""

SIZES: Final = {
    "bool": 1,
    "datetime_i64": 8,
    "error_code": 2,
    "float64": 8,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "timedelta_i32": 4,
    "timedelta_i64": 8,
    "uint16": 2,
    "uuid": 16,
}


def check_counts(kind: Any, frame: bytes, at: int) -> None:
    """Check the request of a class that begins at a position.

    Raises:
        ValueError, IndexError: the frame is too short for a count, or for the request.
    """
    if _skip_struct(kind)(frame, at) > len(frame):
        raise ValueError("the request is truncated")


@cache
def _skip_struct(kind: Any) -> Skip:
    flexible: bool = kind.__flexible__
    skips = [_skip_field(f, flexible) for f in fields(kind) if "tag" not in f.metadata]

    def skip(frame: bytes, at: int) -> int:
        for each in skips:
            at = each(frame, at)
        return _skip_tags(frame, at) if flexible else at

    return skip


def _skip_field(field: Field[Any], flexible: bool) -> Skip:
    declared: Any = field.type
    if is_nullable := NoneType in get_args(declared):
        declared = next(part for part in get_args(declared) if part is not NoneType)
    if get_origin(declared) is tuple:
        return _skip_array(_skip_item(get_args(declared)[0], field, flexible), flexible)
    if is_nullable and _is_struct(declared):
        return _skip_nullable(_skip_struct(declared))
    return _skip_item(declared, field, flexible)


def _skip_item(kind: Any, field: Field[Any], flexible: bool) -> Skip:
    if _is_struct(kind):
        return _skip_struct(kind)
    kafka_type = field.metadata["kafka_type"]
    if size := SIZES.get(kafka_type):
        return lambda frame, at: at + size
    return _skip_sized(2 if kafka_type == "string" else 4, flexible)


def _is_struct(kind: Any) -> bool:
    return is_dataclass(kind)


def _skip_array(item: Skip, flexible: bool) -> Skip:
    def skip(frame: bytes, at: int) -> int:
        count, at = _length(frame, at, 4, flexible)
        if count > len(frame) - at:
            raise ValueError(f"an array of {count} elements is longer than its request")
        for _ in range(count):
            at = item(frame, at)
        return at

    return skip


def _skip_nullable(struct: Skip) -> Skip:
    return lambda frame, at: struct(frame, at + 1) if frame[at] < 0x80 else at + 1


def _skip_sized(size: int, flexible: bool) -> Skip:
    def skip(frame: bytes, at: int) -> int:
        length, at = _length(frame, at, size, flexible)
        return at + max(length, 0)

    return skip


def _skip_tags(frame: bytes, at: int) -> int:
    count, at = _varint(frame, at)
    for _ in range(count):
        _, at = _varint(frame, at)
        size, at = _varint(frame, at)
        at += size
    return at


def _length(frame: bytes, at: int, size: int, flexible: bool) -> tuple[int, int]:
    """Return a length, negative for null, and the position after it."""
    if flexible:
        number, at = _varint(frame, at)
        return number - 1, at
    return int.from_bytes(frame[at : at + size], "big", signed=True), at + size


def _varint(frame: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = frame[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
        if shift > 28:
            raise ValueError("a varint has more than five bytes")
