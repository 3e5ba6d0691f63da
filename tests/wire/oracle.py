"""Helpers to compare requests and responses with kio and with golden bytes.

The package encodes requests and decodes responses; here kio decodes requests and
encodes responses. Golden bytes do not come from kio: each line is a field of the
message definition (`clients/src/main/resources/common/message` of Apache Kafka 4.3.0),
encoded by Kafka's rules for flexible versions: numbers are big endian; a string or
array begins with its length plus one as a varint, 00 is null; a struct ends with the
number of its tagged fields.
"""

import io
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import timedelta
from importlib import import_module
from types import NoneType
from typing import Any, Final, TypeVar, get_args, get_origin
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from sharecons.errors import ProtocolError

__all__ = [
    "decode_entity",
    "encode_entity",
    "from_hex",
    "read_as_bytes_and_view",
    "response_of",
    "schema",
]

T = TypeVar("T")

REPEATED: Final = {"acquired_records", "partitions"}
"""Arrays of structs that have two elements in a response."""

SCALARS: Final[dict[str, Any]] = {
    "bool": True,
    "bytes": b"some bytes",
    "error_code": ErrorCode.none,
    "records": b"some records",
    "string": "m",
    "timedelta_i32": timedelta(seconds=1),
    "timedelta_i64": timedelta(seconds=1),
    "uuid": UUID("00112233-4455-6677-8899-aabbccddeeff"),
}


def from_hex(lines: str) -> bytes:
    """Return the bytes of a hex dump; text after two spaces is a comment."""
    kept = (line.strip().split("  ")[0] for line in lines.splitlines())
    return b"".join(map(_part, " ".join(kept).split()))


def _part(part: str) -> bytes:
    return part[1:-1].encode() if part.startswith("'") else bytes.fromhex(part)


def schema(api: str, version: int) -> Any:
    """Return kio's module for a version of an API; `.request` has a request's parts."""
    import_module(f"kio.schema.{api}.v{version}.request")
    import_module(f"kio.schema.{api}.v{version}.response")
    return import_module(f"kio.schema.{api}.v{version}")


def response_of(name: str, version: int, **changes: Any) -> Any:
    """Return kio's response of an API such as ShareFetch, with every field set."""
    api = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    return _sample(getattr(schema(api, version), f"{name}Response"), 0, **changes)


def _sample(kind: Any, number: int, **changes: Any) -> Any:
    """Return an entity without tagged fields; its numbers are `number`."""
    values = {
        f.name: _value(f.name, f.type, f.metadata.get("kafka_type"), number)
        for f in fields(kind)
        if "tag" not in f.metadata
    }
    return kind(**values | changes)


def _value(name: str, kind: Any, kafka_type: str | None, number: int) -> Any:
    if NoneType in get_args(kind):
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        count = 1 if is_dataclass(item) and name not in REPEATED else 2
        return tuple(_value("", item, kafka_type, number) for number in range(count))
    if is_dataclass(kind):
        return _sample(kind, number)
    return SCALARS.get(kafka_type, number)


def encode_entity(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def decode_entity(kind: Any, data: bytes) -> Any:
    entity, size = entity_reader(kind)(data, 0)
    assert size == len(data), "bytes are left over"
    return entity


def read_as_bytes_and_view(read: Callable[[bytes | memoryview], T], data: bytes) -> T:
    """Decode data as bytes (a small frame) and as a view (a large one).

    Both must have the same result.
    """
    try:
        response = read(data)
    except ProtocolError:
        with pytest.raises(ProtocolError):
            read(memoryview(data))
        raise
    assert response == read(memoryview(data))
    return response
