"""A network whose responses are changed: one field of a message, or some bytes.

A mutation is a list `[api, skip, kind, place, value]`. It is for the response to the
request of this API after `skip` others. `place` chooses a field or a byte, and `value`
what it becomes; both can be any number.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from functools import cache
from types import NoneType
from typing import Any, Final, get_args
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.serial import entity_reader

from sharecons.errors import ProtocolError
from sharecons.wire.codec.kio_schemas import widen
from sharecons.wire.share_fetch import SHARE_FETCH
from tests.fuzz.drawing import BITS, NAMES, encode

__all__ = ["MutatingNetwork", "mutations"]

Mutation = Sequence[Any]

KINDS: Final = ("field", "element", "byte", "cut", "more", "earlier")
CODES: Final = (*(code.value for code in ErrorCode), 9999, -32768)
API_VERSIONS: Final = 18
UNKNOWN: Final = ("", "x", "x" * 300, "é")

_reader: Any = cache(entity_reader)


def mutations(*apis: str) -> SearchStrategy[list[Mutation]]:
    """Return up to three mutations of responses of these APIs."""
    one = st.tuples(
        st.sampled_from(apis),
        st.integers(0, 3),
        # Mostly valid messages: others end the connection.
        st.sampled_from((*("field",) * 5, *KINDS)),
        st.integers(0, 40),
        st.integers(0, 40),
    )
    return st.lists(one.map(list), min_size=1, max_size=3)


class MutatingNetwork:
    """Changes responses until `end` is called.

    Attributes:
        acquired: the acquired offsets in all responses: first and last.
        changed: the names of the APIs whose responses were changed.
    """

    def __init__(self, network: Any, mutations: Sequence[Mutation]) -> None:
        self.acquired: list[tuple[int, int]] = []
        self.changed: set[str] = set()
        self._network = network
        self._left = [list(each) for each in mutations]
        self._earlier = b""

    async def connect(self, endpoint: Any) -> "_MutatingTransport":
        return _MutatingTransport(await self._network.connect(endpoint), self)

    @property
    def has_ended(self) -> bool:
        """True if all mutations were made."""
        return not self._left

    def end(self) -> None:
        """Change no more responses."""
        self._left.clear()

    def respond(self, request: bytes, frame: bytes) -> bytes:
        """Return the response to a request, perhaps with a change."""
        key, version = (int.from_bytes(request[n : n + 2], "big") for n in (4, 6))
        mutation = self._take(key)
        if mutation is not None:
            name, _, kind, place, value = mutation
            self.changed.add(name)
            changed = _change(key, version, frame, kind, place, value, self._earlier)
            # The correlation id stays: another one only ends the connection.
            frame = frame[:4] + changed[4:] if len(changed) >= 4 else changed
        self._earlier = frame
        if key == SHARE_FETCH.key:
            self._record_acquired(frame, version)
        return frame

    def _take(self, key: int) -> Mutation | None:
        name = _name(key)
        for mutation in self._left:
            if mutation[0] == name:
                if mutation[1]:
                    mutation[1] -= 1
                    return None
                self._left.remove(mutation)
                return mutation
        return None

    def _record_acquired(self, frame: bytes, version: int) -> None:
        try:
            response = SHARE_FETCH.read(frame, 5, version)
        except ProtocolError:
            return
        for partition in response.partitions:
            self.acquired += [(first, last) for first, last, _ in partition.acquired]


class _MutatingTransport:
    def __init__(self, transport: Any, network: MutatingNetwork) -> None:
        self._transport = transport
        self._network = network

    async def exchange(self, data: bytes, timeout: float) -> bytes:
        frame = await self._transport.exchange(data, timeout)
        return self._network.respond(data, bytes(frame))

    async def idle(self, wait: Any, on_lost: Any) -> None:
        await self._transport.idle(wait, on_lost)

    async def aclose(self) -> None:
        await self._transport.aclose()


def _name(key: int) -> str:
    return "".join(word.capitalize() for word in api_key_map[key].split("_"))


def _change(
    key: int,
    version: int,
    frame: bytes,
    kind: str,
    place: int,
    value: int,
    earlier: bytes,
) -> bytes:
    at = 4 + place % max(1, len(frame) - 4)
    match kind:
        case "byte":
            return frame[:at] + bytes([value * 6 % 256]) + frame[at + 1 :]
        case "cut":
            return frame[:at]
        case "more":
            return frame + bytes(value)
        case "earlier":
            return earlier
    start = 4 if key == API_VERSIONS else 5
    structure = widen(load_response_schema(key, version))
    try:
        entity, _ = _reader(structure)(frame, start)
    except Exception:
        return frame  # ApiVersions has tagged fields
    paths = list(_paths(entity, arrays=kind == "element"))
    if not paths:
        return frame
    changed = _with_change(entity, paths[place % len(paths)], value)
    try:
        return frame[:start] + encode(changed)
    except Exception:
        return frame  # no message has this value: None where it is not allowed


Path = tuple[str | int, ...]


def _paths(entity: Any, *, arrays: bool) -> Iterator[Path]:
    """Return the paths to the fields of a message, or to its arrays."""
    for each in fields(entity):
        value = getattr(entity, each.name)
        if isinstance(value, tuple):
            if arrays:
                yield (each.name,)
            for index, item in enumerate(value):
                if is_dataclass(item):
                    for path in _paths(item, arrays=arrays):
                        yield (each.name, index, *path)
        elif is_dataclass(value):
            for path in _paths(value, arrays=arrays):
                yield (each.name, *path)
        elif not arrays:
            yield (each.name,)


def _with_change(entity: Any, path: Path, value: int) -> Any:
    name, *rest = path
    assert isinstance(name, str)
    (field,) = (each for each in fields(entity) if each.name == name)
    old = getattr(entity, name)
    if not rest:
        return replace(entity, **{name: _new_value(field, old, value)})
    if isinstance(old, tuple):
        index, *inner = rest
        assert isinstance(index, int)
        item = _with_change(old[index], tuple(inner), value)
        return replace(entity, **{name: (*old[:index], item, *old[index + 1 :])})
    return replace(entity, **{name: _with_change(old, tuple(rest), value)})


def _new_value(field: Any, old: Any, value: int) -> Any:
    if isinstance(old, tuple):
        choices: Sequence[Any] = ((), old + old, old[:1], old[::-1])
    elif is_dataclass(old):
        choices = (None,)
    else:
        choices = _choices(field, old)
    if NoneType in get_args(field.type):
        choices = (None, *choices)
    return choices[value % len(choices)]


def _choices(field: Any, old: Any) -> Sequence[Any]:
    if "kafka_type" not in field.metadata:
        return (None,)  # a struct that is null
    kafka_type = field.metadata["kafka_type"]
    if field.name.endswith("error_code"):
        return CODES
    if bits := BITS.get(kafka_type):
        high = (1 << bits - 1) - 1
        usual = (0, -1, 1, old + 1, old - 1, high, -high - 1, high // 1000)
        return [each for each in usual if -high - 1 <= each <= high]
    return _OTHERS[kafka_type](old)


_OTHERS: Final[dict[str, Callable[[Any], Sequence[Any]]]] = {
    "bool": lambda old: (not old,),
    "bytes": lambda old: (b"", b"x", (old or b"")[:-1], (old or b"") * 2),
    "float64": lambda _: (0.0, math.nan, math.inf, -1.0),
    "records": lambda old: (b"", bytes(old or b"x")[:-1], bytes(old or b"x") * 2),
    "string": lambda old: (*UNKNOWN, *NAMES, "9" * 20, "²", "-1", (old or "") + "x"),
    "timedelta_i32": lambda old: [
        timedelta(milliseconds=ms) for ms in (0, -1, 1, 60_000, 2**31 - 1, -(2**31))
    ],
    "timedelta_i64": lambda old: [
        timedelta(milliseconds=ms) for ms in (0, -1, 1, 60_000, 2**31 - 1)
    ],
    "uuid": lambda old: (UUID(int=0), UUID(int=1)),
}
