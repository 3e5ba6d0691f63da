"""Helpers to compare requests and responses with kio and with golden bytes.

The package encodes requests and decodes responses; here kio decodes requests and
encodes responses. Golden bytes do not come from kio: each line is a field of the
message definition (`clients/src/main/resources/common/message` of Apache Kafka 4.3.0),
encoded by Kafka's rules for flexible versions: numbers are big endian; a string or
array begins with its length plus one as a varint, 00 is null; a struct ends with the
number of its tagged fields.
"""

import io
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import pytest
from kio.serial import entity_reader, entity_writer

from sharecons.errors import ProtocolError

__all__ = [
    "decode_entity",
    "encode_entity",
    "from_hex",
    "read_as_bytes_and_view",
    "schema",
]

T = TypeVar("T")


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
