"""What answers are held against: kio in the opposite direction, and bytes by hand.

The package writes requests and reads answers; so here kio reads requests and writes
answers. Golden bytes do not come from kio: each line is a field of the message
definition (`clients/src/main/resources/common/message` of Apache Kafka 4.3.0, where
the names come from), written out by Kafka's rules for flexible versions: numbers big
endian; a string or array begins with its length plus one as a varint, 00 is null; a
struct ends with the number of its tagged fields.
"""

import io
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import pytest
from kio.serial import entity_reader, entity_writer

from sharecons.errors import ProtocolError

__all__ = ["read", "read_alike", "schema", "spelt", "written"]

T = TypeVar("T")


def spelt(lines: str) -> bytes:
    """Bytes of a hex dump; what follows two spaces tells what they are."""
    kept = (line.strip().split("  ")[0] for line in lines.splitlines())
    return b"".join(map(_part, " ".join(kept).split()))


def _part(part: str) -> bytes:
    return part[1:-1].encode() if part.startswith("'") else bytes.fromhex(part)


def schema(api: str, version: int) -> Any:
    """The module of one version of an API; requests' parts are in its `.request`."""
    import_module(f"kio.schema.{api}.v{version}.request")
    import_module(f"kio.schema.{api}.v{version}.response")
    return import_module(f"kio.schema.{api}.v{version}")


def written(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def read(kind: Any, data: bytes) -> Any:
    entity, size = entity_reader(kind)(data, 0)
    assert size == len(data), "bytes are left over"
    return entity


def read_alike(read: Callable[[bytes | memoryview], T], data: bytes) -> T:
    """Read a small frame, which is bytes, and as a large one, which is a view."""
    try:
        answer = read(data)
    except ProtocolError:
        with pytest.raises(ProtocolError):
            read(memoryview(data))
        raise
    assert answer == read(memoryview(data))
    return answer
