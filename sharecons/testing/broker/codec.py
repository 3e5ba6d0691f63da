"""Encoding and decoding of messages, in any version of any API, by kio.

A request is kio's own entity, read only: `request.topics[0].name`. It lacks the fields
that its version does not have; read those by `of(request, "name", default)`.

A response is written as plain mappings with the field names of the newest version:
lists of mappings for arrays of structs, numbers for error codes, seconds for durations,
milliseconds since the epoch for times. Each version takes the fields that it has. An
absent field gets Kafka's default, else zero (0, "", no elements, null where that is
allowed). A name that no version has raises TypeError.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from types import NoneType
from typing import Any, Final, TypeAlias, get_args, get_origin
from uuid import UUID

from kio.index import load_request_schema as load_kio_request
from kio.index import load_response_schema as load_kio_response
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

from sharecons.testing.broker import txn_offset_commit_messages
from sharecons.testing.broker.request_counts import check_counts

__all__ = [
    "ErrorCode",
    "Header",
    "Request",
    "Response",
    "api_name",
    "decode_header",
    "decode_request",
    "encode_response",
    "field_or",
    "known_versions",
    "load_request_schema",
    "load_response_schema",
    "response_fields",
]

Request: TypeAlias = Any
"""One of kio's entities, or a part of it."""

Response: TypeAlias = Mapping[str, Any]
"""Fields of a response or of a part of it; see the module's docstring."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ZEROS: Final[Mapping[str, Any]] = {
    "bool": False,
    "bytes": b"",
    "datetime_i64": _EPOCH,
    "error_code": ErrorCode.none,
    "records": b"",
    "string": "",
    "timedelta_i32": timedelta(0),
    "timedelta_i64": timedelta(0),
    "uuid": UUID(int=0),
}
_CONVERSIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "datetime_i64": lambda ms: _EPOCH + timedelta(milliseconds=ms),
    "error_code": ErrorCode,
    "timedelta_i32": lambda seconds: timedelta(milliseconds=round(seconds * 1000)),
    "timedelta_i64": lambda seconds: timedelta(milliseconds=round(seconds * 1000)),
}

_TXN_OFFSET_COMMIT: Final = 28
_LATER: Final[Mapping[tuple[int, int], Any]] = {
    (_TXN_OFFSET_COMMIT, 6): txn_offset_commit_messages,
}
"""The messages that kio does not have: modules by API key and version."""

# kio's functions take type variables that cannot be named here.
_reader: Any = cache(entity_reader)
_writer: Any = cache(entity_writer)


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a request."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str


def known_versions(api_key: int) -> range:
    """Return the versions of an API that the codec has."""
    known = {*schema_name_map[api_key_map[api_key]]}
    known.update(version for key, version in _LATER if key == api_key)
    return range(min(known), max(known) + 1)


def load_request_schema(api_key: int, version: int) -> Any:
    """Return the class of a request, kio's or our own."""
    if (module := _LATER.get((api_key, version))) is not None:
        return getattr(module, f"{api_name(api_key)}Request")
    return load_kio_request(api_key, version)


def load_response_schema(api_key: int, version: int) -> Any:
    """Return the class of a response, kio's or our own."""
    if (module := _LATER.get((api_key, version))) is not None:
        return getattr(module, f"{api_name(api_key)}Response")
    return load_kio_response(api_key, version)


def decode_request(frame: bytes) -> tuple[Header, Request]:
    """Decode a whole request.

    Raises:
        ValueError: the frame is invalid, or its API or version is unknown.
    """
    api_key, version = _int16(frame, 0), _int16(frame, 2)
    try:
        kind = load_request_schema(api_key, version)
        header, size = _reader(kind.__header_schema__)(frame, 0)
        check_counts(kind, frame, size)
        request, _ = _reader(kind)(frame, size)
    except Exception as error:  # native codec: any exception means an invalid frame
        raise ValueError(
            f"invalid request: API key {api_key}, version {version}: {error!r}"
        ) from error
    client_id = header.client_id or ""
    return Header(api_key, version, int(header.correlation_id), client_id), request


def decode_header(frame: bytes) -> Header:
    """Decode the header fields that every version has; the client id stays empty."""
    correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
    return Header(_int16(frame, 0), _int16(frame, 2), correlation_id, "")


def encode_response(header: Header, response: Response, version: int) -> bytes:
    """Encode a whole response with its length, in the version given.

    Raises:
        TypeError: no version of the response has a field of that name.
    """
    kind = load_response_schema(header.api_key, version)
    buffer = io.BytesIO()
    buffer.write(bytes(4))
    head = kind.__header_schema__
    _writer(head)(buffer, head(correlation_id=header.correlation_id))
    _writer(kind)(buffer, _entity(kind, response))
    length = buffer.tell() - 4  # prose: ok
    buffer.seek(0)
    buffer.write(length.to_bytes(4, "big"))
    return buffer.getvalue()


def response_fields(api_key: int, version: int) -> frozenset[str]:
    """Return the names of a response's top-level fields in a version."""
    return frozenset(_fields(load_response_schema(api_key, version)))


def field_or(message: Request, name: str, default: Any) -> Any:
    """Return a field of a message, or `default` if the version does not have it."""
    return getattr(message, name, default)


def api_name(api_key: int) -> str:
    """Return an API's name as in Kafka's message definitions: ShareFetch."""
    return "".join(word.capitalize() for word in api_key_map[api_key].split("_"))


def _int16(frame: bytes, offset: int) -> int:
    return int.from_bytes(frame[offset : offset + 2], "big", signed=True)


def _entity(kind: Any, values: Response) -> Any:
    built = {name: write(values) for name, write in _fields(kind).items()}
    for name in values:
        if name not in built and name not in _names(kind.__api_key__, kind.__name__):
            raise TypeError(f"{kind.__name__} has no field {name!r} in any version")
    return kind(**built)


@cache
def _fields(kind: Any) -> Mapping[str, Callable[[Response], Any]]:
    return {field.name: _field(field) for field in fields(kind)}


@cache
def _names(api_key: int, struct: str) -> frozenset[str]:
    """Return the fields of a struct in all versions of a response."""
    found: set[str] = set()
    for version in known_versions(api_key):
        module = import_module(load_response_schema(api_key, version).__module__)
        if kind := getattr(module, struct, None):
            found.update(field.name for field in fields(kind))
    return frozenset(found)


def _field(field: Field[Any]) -> Callable[[Response], Any]:
    """Return a function that gets a field's value from the mapping and converts it."""
    name, convert, default = field.name, _conversion(field), _default(field)

    def write(values: Response) -> Any:
        value = values.get(name, MISSING)
        if value is MISSING:
            return default()
        return None if value is None else convert(value)

    return write


def _conversion(field: Field[Any]) -> Callable[[Any], Any]:
    declared = field.type
    if get_origin(declared) is tuple or _tuple_in(declared):
        inner = get_args(_tuple_in(declared) or declared)[0]
        one = _element_conversion(inner, field)
        return lambda values: tuple(one(value) for value in values)
    return _element_conversion(declared, field)


def _element_conversion(declared: Any, field: Field[Any]) -> Callable[[Any], Any]:
    struct = _struct_in(declared)
    if struct is not None:
        return lambda value: _entity(struct, value)
    return _CONVERSIONS.get(field.metadata.get("kafka_type", ""), lambda value: value)


def _default(field: Field[Any]) -> Callable[[], Any]:
    if field.default is not MISSING:
        return lambda: field.default
    declared = field.type
    if get_origin(declared) is tuple:
        return lambda: ()
    if NoneType in get_args(declared):
        return lambda: None
    if is_dataclass(declared):
        return lambda: _entity(declared, {})
    zero = _ZEROS.get(field.metadata.get("kafka_type", ""), 0)
    return lambda: zero


def _tuple_in(declared: Any) -> Any:
    """Return the array type of a nullable field."""
    arrays = (part for part in get_args(declared) if get_origin(part) is tuple)
    return next(arrays, None)


def _struct_in(declared: Any) -> Any:
    if is_dataclass(declared):
        return declared
    return next((part for part in get_args(declared) if is_dataclass(part)), None)
