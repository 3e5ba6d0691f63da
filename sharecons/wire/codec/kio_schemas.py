"""Widens kio's schemas of responses to what Kafka's compatibility rules allow.

kio rejects unknown error codes and unknown tagged fields. Newer brokers can add both
without a new version of the API (KIP-482 for tagged fields). So error codes become
plain numbers, and tagged fields are removed. Timestamps become numbers too: Python's
datetime ends with the year 9999. Records can also be null: since ShareFetch version 1
they should not be, but a broker can still send null for no records.
"""

from dataclasses import Field, field, fields, is_dataclass, make_dataclass
from functools import cache
from types import GenericAlias
from typing import Any, get_args, get_origin

from kio.schema.errors import ErrorCode
from kio.static.primitive import Records, i16, i64

__all__ = ["widen"]

_TRAITS = (
    "__type__",
    "__version__",
    "__flexible__",
    "__api_key__",
    "__header_schema__",
)


@cache
def widen(kind: Any) -> Any:
    """Return a widened copy of an entity, for kio's reader.

    Error codes are plain numbers, records can be None, and tagged fields are removed:
    the caller must remove them from the frame (see `kio_guard`).
    """
    traits = {name: getattr(kind, name) for name in _TRAITS if hasattr(kind, name)}
    return make_dataclass(
        kind.__name__,
        [_widen_field(f) for f in fields(kind) if "tag" not in f.metadata],
        namespace={**traits, "__module__": kind.__module__},
        frozen=True,
        slots=True,
        kw_only=True,
    )


def _widen_field(f: Field[Any]) -> tuple[str, Any, Any]:
    metadata = dict(f.metadata)
    if f.type is ErrorCode:
        metadata["kafka_type"] = "int16"
    if metadata.get("kafka_type") == "datetime_i64":
        metadata["kafka_type"] = "int64"
        return f.name, i64, field(default=f.default, metadata=metadata)
    return f.name, _widen_type(f.type), field(default=f.default, metadata=metadata)


def _widen_type(declared: Any) -> Any:
    if declared is ErrorCode:
        return i16
    if declared is Records:
        return Records | None
    if _is_entity(declared):
        return widen(declared)
    if get_origin(declared) is tuple:
        return GenericAlias(tuple, (_widen_type(get_args(declared)[0]), ...))
    nullable = [part for part in get_args(declared) if _is_entity(part)]
    return widen(nullable[0]) | None if nullable else declared


def _is_entity(declared: Any) -> bool:
    return is_dataclass(declared)
