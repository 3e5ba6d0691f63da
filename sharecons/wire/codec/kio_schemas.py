"""kio's schemas of answers, as widely as Kafka's own rules have them.

kio takes an error code that it does not know for garbage, and so it does with a
tagged field. Kafka lets newer brokers add both without a new version of the API
(KIP-482 for the fields): the code is of use as a number, the field can be skipped.
Records of null ended with ShareFetch version 1; a broker that still sends them
where it has none means nothing else by it.
"""

from dataclasses import Field, field, fields, is_dataclass, make_dataclass
from functools import cache
from types import GenericAlias
from typing import Any, get_args, get_origin

from kio.schema.errors import ErrorCode
from kio.static.primitive import Records, i16

__all__ = ["widened"]

_TRAITS = (
    "__type__",
    "__version__",
    "__flexible__",
    "__api_key__",
    "__header_schema__",
)


@cache
def widened(kind: Any) -> Any:
    """Make the like of one of kio's entities, for kio's own reader to read by.

    Error codes are plain numbers in it, records may be None; tagged fields are left
    out (this client uses none), so that whoever reads by it has to skip them first.
    """
    traits = {name: getattr(kind, name) for name in _TRAITS if hasattr(kind, name)}
    return make_dataclass(
        kind.__name__,
        [_widened_field(f) for f in fields(kind) if "tag" not in f.metadata],
        namespace={**traits, "__module__": kind.__module__},
        frozen=True,
        slots=True,
        kw_only=True,
    )


def _widened_field(f: Field[Any]) -> tuple[str, Any, Any]:
    metadata = dict(f.metadata)
    if f.type is ErrorCode:
        metadata["kafka_type"] = "int16"
    return f.name, _widened_type(f.type), field(default=f.default, metadata=metadata)


def _widened_type(declared: Any) -> Any:
    if declared is ErrorCode:
        return i16
    if declared is Records:
        return Records | None
    if _is_entity(declared):
        return widened(declared)
    if get_origin(declared) is tuple:
        return GenericAlias(tuple, (_widened_type(get_args(declared)[0]), ...))
    nullable = [part for part in get_args(declared) if _is_entity(part)]
    return widened(nullable[0]) | None if nullable else declared


def _is_entity(declared: Any) -> bool:
    return is_dataclass(declared)
