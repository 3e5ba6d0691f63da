"""Requests of every API, built from mappings, and their responses."""

import base64
import io
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import timedelta
from types import NoneType
from typing import Any, Final, get_args, get_origin
from uuid import UUID

from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer

from sharecons.testing.broker.codec import load_request_schema, load_response_schema

__all__ = [
    "API_KEYS",
    "METADATA",
    "VERSIONS",
    "base64_id",
    "decode_response",
    "encode_request",
    "make_request",
]

API_KEYS = {name: key for key, name in api_key_map.items()}

# kio's functions take type variables that cannot be named here.
_reader: Any = entity_reader
_writer: Any = entity_writer


def make_request(api: str, version: int, **values: Any) -> Any:
    """Return a request of kio's: `make_request("metadata", 12, topics=None)`.

    Structs are mappings, arrays are lists or tuples, times are timedeltas or
    milliseconds. Absent fields are null, zero or empty. Fields that the version does
    not have are left out.
    """
    return _struct(load_request_schema(API_KEYS[api], version), values)


def encode_request(
    request: Any, correlation_id: int = 1, client_id: str = "test"
) -> bytes:
    """Return the request as a frame with its length."""
    header = request.__header_schema__(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    buffer = io.BytesIO()
    _writer(type(header))(buffer, header)
    _writer(type(request))(buffer, request)
    content = buffer.getvalue()
    return len(content).to_bytes(4, "big") + content


def decode_response(frame: bytes, api_key: int, version: int) -> Any:
    """Decode a whole response, without its length."""
    kind: Any = load_response_schema(api_key, version)
    _, size = _reader(kind.__header_schema__)(frame, 0)
    response, body_size = _reader(kind)(frame, size)
    assert size + body_size == len(frame), "the frame is longer than the response"
    return response


def base64_id(some_id: UUID) -> str:
    """Return an id as Kafka writes it in text."""
    return base64.urlsafe_b64encode(some_id.bytes).rstrip(b"=").decode()


def _struct(kind: Any, values: Mapping[str, Any]) -> Any:
    return kind(
        **{
            field.name: _value(field, values[field.name])
            if field.name in values
            else _default(field)
            for field in fields(kind)
            if field.name in values or field.default is MISSING
        }
    )


def _value(field: Field[Any], value: Any) -> Any:
    struct = next(filter(is_dataclass, _types_in(field.type)), None)
    if isinstance(value, list | tuple):
        return tuple(
            _struct(struct, each) if isinstance(each, Mapping) else each
            for each in value
        )
    if isinstance(value, Mapping):
        return _struct(struct, value)
    if _is_time(field) and isinstance(value, int):
        return timedelta(milliseconds=value)
    return value


def _default(field: Field[Any]) -> Any:
    if NoneType in get_args(field.type):
        return None
    if get_origin(field.type) is tuple:
        return ()
    if _is_time(field):
        return timedelta(0)
    kafka_type = field.metadata.get("kafka_type", "")
    return {"bool": False, "bytes": b"", "string": ""}.get(kafka_type, 0)


def _is_time(field: Field[Any]) -> bool:
    return str(field.metadata.get("kafka_type", "")).startswith("timedelta")


def _types_in(declared: Any) -> Iterator[Any]:
    yield declared
    for inner in get_args(declared):
        yield from _types_in(inner)


METADATA: Final = make_request(
    "metadata",
    12,
    topics=None,
    allow_auto_topic_creation=False,
    include_topic_authorized_operations=False,
)
"""A request for all topics."""

VERSIONS: Final = make_request(
    "api_versions", 3, client_software_name="test", client_software_version="1"
)
