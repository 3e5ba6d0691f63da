"""The outline of an answer: may the codec be let at it?

kio's reader believes what bytes say of themselves. For an array it reserves the
room that its count asks for, and where the system has not so much (a count may ask
for 34 GB), the process ends, without an exception that anybody could catch. So
counts are held against the bytes that are there, before the codec sees them. The
same walk skips tagged fields, which the codec cannot (see `schemas`).

The walk goes by kio's own schemas. It costs 2 to 10 µs an answer, for what has
a fixed size is stepped over at once, records and acquired ranges included.
"""

from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin

__all__ = ["untagged"]

Cut = tuple[int, int, bytes]
"""From where, to where, and what is to be there instead."""

Step = Callable[[bytes, int, list[Cut]], int]
"""Goes from where something begins to where it ends."""

Part = int | Step
"""A number of bytes, or how to find out."""

NULL: Final = -1

SIZES: Final = {
    "bool": 1,
    "error_code": 2,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "timedelta_i32": 4,
    "timedelta_i64": 8,
    "uuid": 16,
}


def untagged(kind: Any, frame: bytes, offset: int) -> bytes:
    """Give the frame without its tagged fields, its counts found to be honest.

    Raises:
        ValueError, IndexError: the frame ends before what it announces.
    """
    cuts: list[Cut] = []
    if _outline(kind)(frame, offset, cuts) > len(frame):
        raise ValueError("it ends too early")
    if not cuts:
        return frame
    kept: list[bytes] = []
    position = 0
    for start, stop, instead in sorted(cuts):
        kept += (frame[position:start], instead)
        position = stop
    return b"".join((*kept, frame[position:]))


@cache
def _outline(kind: Any) -> Step:
    parts = _parts(kind)
    tagged = kind.__flexible__

    def step(frame: bytes, at: int, cuts: list[Cut]) -> int:
        for part in parts:
            at = at + part if isinstance(part, int) else part(frame, at, cuts)
        if not tagged:
            return at
        return at + 1 if frame[at] == 0 else _skip_tags(frame, at, cuts)

    return step


def _parts(kind: Any) -> list[Part]:
    """What an entity consists of; neighbours of fixed size as one."""
    parts: list[Part] = []
    for field in fields(kind):
        part = _part(kind, field)
        if parts and isinstance(part, int) and isinstance(parts[-1], int):
            parts[-1] += part
        else:
            parts.append(part)
    return parts


def _part(kind: Any, field: Field[Any]) -> Part:
    declared: Any = field.type
    nullable = [part for part in get_args(declared) if part is not NoneType]
    if get_origin(declared) is UnionType:
        declared = nullable[0]
    if get_origin(declared) is tuple:
        return _array(get_args(declared)[0], field, flexible=kind.__flexible__)
    if not _is_entity(declared):
        return _primitive(field, flexible=kind.__flexible__)
    entity: Step = _outline(declared)
    return entity if declared is field.type else _nullable(entity)


def _is_entity(declared: Any) -> bool:
    return is_dataclass(declared)


def _primitive(field: Field[Any], *, flexible: bool) -> Part:
    kafka_type = field.metadata["kafka_type"]
    if flexible:
        return SIZES.get(kafka_type, _skip_bytes)
    legacy = _skip_legacy_string if kafka_type == "string" else _skip_legacy_bytes
    return SIZES.get(kafka_type, legacy)


def _array(item: Any, field: Field[Any], *, flexible: bool) -> Step:
    part: Part = (
        _outline(item) if _is_entity(item) else _primitive(field, flexible=flexible)
    )
    size = _size(item) if _is_entity(item) else part
    ends_in_tags = _is_entity(item) and flexible
    count_of = _count if flexible else _legacy_count
    lowest = NULL if get_origin(field.type) is UnionType else 0

    def step(frame: bytes, at: int, cuts: list[Cut]) -> int:
        count, at = count_of(frame, at)
        if count < lowest:
            raise ValueError("null, where an array is to be")
        if count > len(frame) - at:
            raise ValueError(f"an array of {count}, with {len(frame) - at} bytes left")
        if count <= 0:
            return at
        if isinstance(size, int):
            end = at + count * size
            # The last byte of each counts its tagged fields.
            if not ends_in_tags or not any(frame[at + size - 1 : end : size]):
                return end
        for _ in range(count):
            at = at + part if isinstance(part, int) else part(frame, at, cuts)
        return at

    return step


def _size(kind: Any) -> int | None:
    """How long an entity is, if it always is as long and has no tagged fields."""
    parts = _parts(kind)
    if len(parts) == 1 and isinstance(parts[0], int):
        return parts[0] + int(kind.__flexible__)
    return None


def _nullable(step: Step) -> Step:
    def skip(frame: bytes, at: int, cuts: list[Cut]) -> int:
        # A marker goes before, negative for null (KIP-893). The codec takes only -1 for
        # null: it would read on, where nothing was checked.
        if frame[at] < 0x80:
            return step(frame, at + 1, cuts)
        cuts.append((at, at + 1, b"\xff"))
        return at + 1

    return skip


def _skip_bytes(frame: bytes, at: int, cuts: list[Cut]) -> int:
    length, at = _count(frame, at)
    return at + max(length, 0)


def _skip_legacy_string(frame: bytes, at: int, cuts: list[Cut]) -> int:
    length = int.from_bytes(frame[at : at + 2], "big", signed=True)
    return at + 2 + max(length, 0)


def _skip_legacy_bytes(frame: bytes, at: int, cuts: list[Cut]) -> int:
    length, at = _legacy_count(frame, at)
    return at + max(length, 0)


def _skip_tags(frame: bytes, at: int, cuts: list[Cut]) -> int:
    start = at
    count, at = _varint(frame, at)
    for _ in range(count):
        _, at = _varint(frame, at)
        size, at = _varint(frame, at)
        at += size
    cuts.append((start, at, b"\0"))
    return at


def _count(frame: bytes, at: int) -> tuple[int, int]:
    """A compact length: the wire has it one higher, so that 0 is null."""
    number, at = _varint(frame, at)
    return number - 1, at


def _legacy_count(frame: bytes, at: int) -> tuple[int, int]:
    return int.from_bytes(frame[at : at + 4], "big", signed=True), at + 4


def _varint(frame: bytes, at: int) -> tuple[int, int]:
    number = frame[at] & 0x7F
    shift = 7
    while frame[at] & 0x80:
        at += 1
        number |= (frame[at] & 0x7F) << shift
        shift += 7
        if shift > 35:
            raise ValueError("a number of more than five bytes")
    return number, at + 1
