"""Strategies: numbers and texts that readers are likely to fail for, messages of Kafka,
and valid bytes with changes.
"""

import io
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from datetime import timedelta
from functools import cache
from types import NoneType
from typing import Any, Final, get_args, get_origin
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from kio.serial import entity_writer

from sharecons.wire.codec.kio_schemas import widen

__all__ = [
    "NAMES",
    "TOPIC_ID",
    "changed",
    "encode",
    "integers",
    "messages",
    "number_texts",
    "short_texts",
    "texts",
]

NAMES: Final = ("orders", "billing", "1", "member", "")
"""Names that exist on the brokers of targets, and others."""

TOPIC_ID: Final = UUID("00112233-4455-6677-8899-aabbccddeeff")

MAX_ELEMENTS: Final = 3
BITS: Final = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "int64": 64}

_writer: Any = cache(entity_writer)


def integers(bits: int, *, signed: bool = True) -> SearchStrategy[int]:
    """Return integers of a size; limits and small numbers most often."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, 2**bits - 1)
    usual = [
        n for n in (0, 1, -1, 2, 3, 9, 255, high, high - 1, low) if low <= n <= high
    ]
    return st.sampled_from(usual) | st.integers(low, high)


def short_texts() -> SearchStrategy[str]:
    """Return texts that UTF-8 can encode."""
    return st.sampled_from((*NAMES, "é", "x" * 300)) | st.text(
        st.characters(exclude_categories=["Cs"]), max_size=8
    )


def texts(*words: str, max_parts: int = 6) -> SearchStrategy[str]:
    """Return words in any order, with other texts between them.

    Surrogates, digits of other scripts and numbers of thousands of digits included.
    """
    odd = st.sampled_from(("\ud800", "²", "٣", "\0", "\u2028", "9" * 5000, "é"))
    return st.lists(
        st.sampled_from(words) | st.text(max_size=4) | odd | number_texts(),
        max_size=max_parts,
    ).map("".join)


def number_texts() -> SearchStrategy[str]:
    """Return texts that are numbers, or look like them."""
    odd = ("", "-0", "+1", "1e999", "nan", "inf", "-inf", "0x10", "1_000", "٣", "²")
    huge = ("9" * 400, "9" * 5000, "1" + "0" * 400, "-" + "9" * 5000, "1." + "0" * 400)
    return st.sampled_from((*odd, *huge)) | integers(64).map(str)


def changed(
    whole: SearchStrategy[bytes], max_changes: int = 3
) -> SearchStrategy[bytes]:
    """Return valid bytes with a few changes, often none."""
    return st.builds(_change_all, whole, st.lists(_CHANGES, max_size=max_changes))


_CHANGES: Final = st.tuples(
    st.sampled_from(("byte", "bit", "insert", "delete", "repeat", "cut", "number")),
    st.integers(0, 1 << 16),
    st.integers(0, 255),
)


def _change_all(data: bytes, changes: Sequence[tuple[str, int, int]]) -> bytes:
    for kind, place, value in changes:
        at = place % (len(data) + 1)
        data = _KINDS[kind](data, at, value)
    return data


_NUMBERS: Final = (
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x80\0\0\0",
    b"\0\0\0\0",
    b"\0\x01\0\0",
    b"\xff\xff\xff\xff\x0f",
    b"\xff" * 8,
    b"\x7f" + b"\xff" * 7,
)
_KINDS: Final[dict[str, Callable[[bytes, int, int], bytes]]] = {
    "byte": lambda data, at, value: data[:at] + bytes((value,)) + data[at + 1 :],
    "bit": lambda data, at, value: (
        data[:at]
        + bytes(b ^ 1 << value % 8 for b in data[at : at + 1])
        + data[at + 1 :]
    ),
    "insert": lambda data, at, value: data[:at] + bytes((value,)) + data[at:],
    "delete": lambda data, at, value: data[:at] + data[at + 1 + value % 16 :],
    "repeat": lambda data, at, value: (
        data[:at] + data[at : at + 1 + value % 32] * 2 + data[at + 1 + value % 32 :]
    ),
    "cut": lambda data, at, value: data[:at],
    "number": lambda data, at, value: (
        data[:at] + _NUMBERS[value % 8] + data[at + len(_NUMBERS[value % 8]) :]
    ),
}


# Messages of Kafka.


def messages(kind: Any, **special: SearchStrategy[Any]) -> SearchStrategy[bytes]:
    """Return encoded messages of one of kio's classes.

    Args:
        special: the values of the fields with these names, wherever they are.
    """
    return _structs(widen(kind), special).map(encode)


def encode(entity: Any) -> bytes:
    buffer = io.BytesIO()
    _writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def _structs(kind: Any, special: dict[str, SearchStrategy[Any]]) -> SearchStrategy[Any]:
    return st.builds(
        kind, **{field.name: _values(field, special) for field in fields(kind)}
    )


def _values(field: Any, special: dict[str, SearchStrategy[Any]]) -> SearchStrategy[Any]:
    declared: Any = field.type
    inner = [part for part in get_args(declared) if part is not NoneType]
    nullable = NoneType in get_args(declared)
    if nullable:
        (declared,) = inner
    if get_origin(declared) is tuple:
        item = get_args(declared)[0]
        one = _item(item, field, special)
        values: SearchStrategy[Any] = st.lists(one, max_size=MAX_ELEMENTS).map(tuple)
    else:
        values = _item(declared, field, special)
    return st.none() | values if nullable else values


def _item(kind: Any, field: Any, special: dict[str, SearchStrategy[Any]]) -> Any:
    if is_dataclass(kind):
        return _structs(kind, special)
    if field.name in special:
        return special[field.name]
    return _scalars(field.metadata["kafka_type"])


@cache
def _scalars(kafka_type: str) -> SearchStrategy[Any]:
    if bits := BITS.get(kafka_type):
        return integers(bits, signed=not kafka_type.startswith("u"))
    milliseconds = integers(32 if kafka_type.endswith("i32") else 53)
    return {
        "bool": st.booleans(),
        "bytes": st.binary(max_size=20),
        "float64": st.floats(),
        "records": st.binary(max_size=20),
        "string": short_texts(),
        "timedelta_i32": milliseconds.map(lambda ms: timedelta(milliseconds=ms)),
        "timedelta_i64": integers(32).map(lambda ms: timedelta(milliseconds=ms)),
        "uuid": st.sampled_from((TOPIC_ID, UUID(int=0))) | st.uuids(),
    }[kafka_type]
