"""Validates array counts before kio parses a response, and removes tagged fields.

kio's reader allocates memory for the count of an array before it reads the elements.
If the memory is not available (a count can need 34 GB), the process aborts without an
exception. So each count is first compared with the bytes that are left. The same pass
removes tagged fields, which the schemas of `kio_schemas` do not have.

The pass follows kio's schemas. It takes 2 to 10 µs per response, since everything of
fixed size is skipped in one step.
"""

from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin

__all__ = ["strip_tagged_fields"]

Cut = tuple[int, int, bytes]
"""Start and end of bytes to replace, and their replacement."""

Step = Callable[[bytes, int, list[Cut]], int]
"""A function that returns the end of what begins at a position in the frame."""

Part = int | Step
"""A fixed number of bytes, or a function that finds the end."""

NULL: Final = -1

SIZES: Final = {
    "bool": 1,
    "datetime_i64": 8,
    "error_code": 2,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "timedelta_i32": 4,
    "timedelta_i64": 8,
    "uuid": 16,
}


def strip_tagged_fields(kind: Any, frame: bytes, offset: int) -> bytes:
    """Validate the counts in a frame; return it without tagged fields.

    Raises:
        ValueError, IndexError: the frame is truncated, or a count is too large.
    """
    cuts: list[Cut] = []
    if _entity_step(kind)(frame, offset, cuts) > len(frame):
        raise ValueError("the message is truncated")
    if not cuts:
        return frame
    kept: list[bytes] = []
    position = 0
    for start, stop, instead in sorted(cuts):
        kept += (frame[position:start], instead)
        position = stop
    return b"".join((*kept, frame[position:]))


@cache
def _entity_step(kind: Any) -> Step:
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
    """Return the parts of an entity; consecutive parts of fixed size are merged."""
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
    entity: Step = _entity_step(declared)
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
        _entity_step(item) if _is_entity(item) else _primitive(field, flexible=flexible)
    )
    size = _size(item) if _is_entity(item) else part
    ends_in_tags = _is_entity(item) and flexible
    count_of = _count if flexible else _legacy_count
    lowest = NULL if get_origin(field.type) is UnionType else 0

    def step(frame: bytes, at: int, cuts: list[Cut]) -> int:
        count, at = count_of(frame, at)
        if count < lowest:
            raise ValueError("an array is null")
        if count > len(frame) - at:
            left = len(frame) - at
            raise ValueError(f"an array of {count} elements, but {left} bytes are left")
        if count <= 0:
            return at
        if isinstance(size, int):
            end = at + count * size
            # The last byte of each element is the number of its tagged fields.
            if not ends_in_tags or not any(frame[at + size - 1 : end : size]):
                return end
        for _ in range(count):
            at = at + part if isinstance(part, int) else part(frame, at, cuts)
        return at

    return step


def _size(kind: Any) -> int | None:
    """Return the size of an entity without tagged fields, or None if it varies."""
    parts = _parts(kind)
    if len(parts) == 1 and isinstance(parts[0], int):
        return parts[0] + int(kind.__flexible__)
    return None


def _nullable(step: Step) -> Step:
    def skip(frame: bytes, at: int, cuts: list[Cut]) -> int:
        # A marker byte precedes it, negative for null (KIP-893). kio treats only -1 as
        # null, and would parse bytes that were not validated.
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
    """Return a compact length (-1 for null, encoded as length + 1) and the position."""
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
            raise ValueError("a varint has more than five bytes")
    return number, at + 1
