"""Null in each field of a response: ProtocolError where Kafka's schema has none.

Every string, byte field and array is set to null, one at a time, in a response of every
API and version that the client reads. Where the schema allows null, the response is
read. kio's schemas agree with Kafka 4.3.0 on which fields these are.
"""

from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass
from datetime import timedelta
from functools import cache
from importlib import import_module
from struct import pack
from types import GenericAlias, NoneType
from typing import Any, get_args, get_origin
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.errors import ProtocolError
from sharecons.protocol.admin.requests import DescribeFeatures, TopicMetadataRequest
from sharecons.wire.codec.registry import API_LOCATIONS
from sharecons.wire.fetch import FETCH
from sharecons.wire.share_state_records import read_key, read_value
from tests.wire.oracle import encode_entity, from_hex, response_of
from tests.wire.test_admin_responses import FEATURES, api_of, metadata
from tests.wire.test_newer_brokers import responses

TOPIC = UUID("00112233-4455-6677-8899-aabbccddeeff")
SECOND = timedelta(seconds=1)
MARK = "\x1fmark\x1f"
TRAITS = (
    "__type__",
    "__version__",
    "__flexible__",
    "__api_key__",
    "__header_schema__",
)
VARIABLE = {"string", "bytes", "records"}


@dataclass(frozen=True)
class Null:
    """A field that becomes null, and whether Kafka's schema allows that."""

    path: tuple
    allowed: bool

    def __str__(self):
        return ".".join(map(str, self.path))


def all_responses():
    yield from responses()
    for version in FETCH.versions:
        yield (
            f"fetch-{version}",
            response_of("Fetch", version),
            lambda data, version=version: FETCH.read(data, 0, version),
        )
    features = api_of(DescribeFeatures)
    for version in features.versions:
        yield (
            f"features-{version}",
            response_of("ApiVersions", version),
            lambda data, version=version: features.read(data, 0, version),
        )


def nulls(entity, path=()):
    """Return every field of a response that has an encoding for null."""
    for f in fields(entity):
        if "tag" in f.metadata:
            continue
        value = getattr(entity, f.name)
        here = (*path, f.name)
        allowed = NoneType in get_args(f.type)
        is_array = isinstance(value, tuple) or get_origin(f.type) is tuple
        if is_array:
            yield Null(here, allowed)
        if is_array and value and is_dataclass(value[0]):
            yield from nulls(value[0], (*here, 0))
        elif is_array and value and f.metadata.get("kafka_type") in VARIABLE:
            yield Null((*here, 0), False)
        elif is_dataclass(value):
            if allowed:
                yield Null(here, True)
            yield from nulls(value, here)
        elif f.metadata.get("kafka_type") in VARIABLE and not is_array:
            yield Null(here, allowed)


@cache
def nullable(kind):
    """Copy one of kio's entities into one whose strings and arrays can all be null."""
    return make_dataclass(
        kind.__name__,
        [
            (f.name, _nullable(f), field(default=f.default, metadata=dict(f.metadata)))
            for f in fields(kind)
            if "tag" not in f.metadata
        ],
        namespace={
            **{name: getattr(kind, name) for name in TRAITS if hasattr(kind, name)},
            "__module__": kind.__module__,
        },
        frozen=True,
        slots=True,
        kw_only=True,
    )


def _nullable(f):
    is_optional = NoneType in get_args(f.type)
    kind: Any = f.type
    if is_optional:
        (kind,) = (part for part in get_args(f.type) if part is not NoneType)
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        item = nullable(item) if is_dataclass(item) else item
        return GenericAlias(tuple, (item, ...)) | None
    if is_dataclass(kind):
        return nullable(kind) | None if is_optional else nullable(kind)
    return kind | None if f.metadata["kafka_type"] in VARIABLE else f.type


def with_null(entity, path):
    """Return the bytes of a response with null at `path`."""
    data = encode_entity(_replace_by_mark(entity, path))
    if not isinstance(path[-1], int):
        return data
    # kio writes no null inside an array.
    mark = MARK.encode()
    length, null = (
        (bytes((len(mark) + 1,)), b"\0")
        if entity.__flexible__
        else (pack(">h", len(mark)), b"\xff\xff")
    )
    assert 1 == data.count(length + mark)
    return data.replace(length + mark, null)


def _replace_by_mark(value, path):
    if path == ():
        return None
    if is_dataclass(value):
        kind = nullable(type(value))
        return kind(
            **{
                f.name: _replace_by_mark(
                    getattr(value, f.name),
                    path[1:] if path and path[0] == f.name else None,
                )
                for f in fields(kind)
            }
        )
    if isinstance(value, tuple):
        if path and path[0] == 0 and len(path) == 1:
            return (MARK, *value[1:])
        return tuple(
            _replace_by_mark(each, path[1:] if path and path[0] == i else None)
            for i, each in enumerate(value)
        )
    return value


CASES = [
    pytest.param(entity, read, null, id=f"{name}-{null}")
    for name, entity, read in all_responses()
    for null in nulls(entity)
]
REJECTED = [
    case
    for case in CASES
    # Null records are read as empty, see `test_share_fetch`.
    if not (case.values[2].allowed or case.values[2].path[-1] == "records")
]
ALLOWED = [case for case in CASES if case not in REJECTED]


@pytest.mark.parametrize(("entity", "read", "null"), REJECTED)
def test_null_where_the_schema_has_none_is_a_protocol_error(entity, read, null):
    with pytest.raises(ProtocolError, match=r"null|None|invalid ApiVersions response"):
        read(with_null(entity, null.path))


HEARTBEATS = [
    pytest.param(entity, read, id=name)
    for name, entity, read in all_responses()
    if entity.__api_key__ == 76
]


@pytest.mark.parametrize(("entity", "read"), HEARTBEATS)
@pytest.mark.parametrize("marker", range(0x80, 0x100))
@pytest.mark.parametrize("after", ["00 00", "ffffffff0f", "02"])
def test_null_assignment_has_nothing_after_it(entity, read, marker, after):
    """Any negative number means null; no assignment is read after it."""
    null = with_null(entity, ("assignment",))
    assert null.endswith(from_hex("ff 00"))
    same = null[:-2] + bytes((marker, 0))

    assert read(null) == read(same)
    with pytest.raises(ProtocolError):
        read(same[:-1] + from_hex(after) + b"\0")


@pytest.mark.parametrize(("entity", "read", "null"), ALLOWED)
def test_null_where_the_schema_allows_it_is_read(entity, read, null):
    read(with_null(entity, null.path))


EXTREMES = (0x00, 0x01, 0x02, 0x7F, 0x80, 0x81, 0xFE, 0xFF)


@pytest.mark.parametrize(
    ("entity", "read"),
    [pytest.param(entity, read, id=name) for name, entity, read in all_responses()],
)
@given(data=st.data())
def test_several_bytes_changed_are_read_or_a_protocol_error(entity, read, data):
    changed = bytearray(encode_entity(entity))
    for _ in range(data.draw(st.integers(2, 4))):
        position = data.draw(st.integers(0, len(changed) - 1))
        changed[position] = data.draw(st.sampled_from(EXTREMES))

    try:
        read(bytes(changed))
    except ProtocolError:
        pass


def test_every_api_has_a_response_with_a_null():
    places = [home.split(".") for home in API_LOCATIONS.values()]
    apis = [getattr(import_module(f"sharecons.wire.{m}"), name) for m, name in places]
    covered = {
        (entity.__api_key__, entity.__version__)
        for _, entity, _ in all_responses()
        if any(nulls(entity))
    }

    spoken = {(api.key, version) for api in apis for version in api.versions}
    numbers_only = {(22, 4), (22, 5), (72, 0)}  # InitProducerId, PushTelemetry
    assert (spoken | {(18, 0)}) - numbers_only == covered


@pytest.mark.parametrize(
    ("valid", "null"),
    [
        ("0a 'share.ver' 0000", "00 0000"),
        ("0a 'share.ver' 0001", "00 0001"),
        ("02 0a 'share.ver' 0000 0001 00", "00"),
        ("02 0a 'share.ver' 0001 0001 00", "00"),
    ],
    ids=["supported name", "finalized name", "supported", "finalized"],
)
def test_null_in_the_features_is_a_protocol_error(valid, null):
    lines = []
    for line in FEATURES.splitlines():
        if valid in line:
            tag, rest = line.strip()[:2], line.strip()[6:].replace(valid, null)
            size = len(from_hex(rest))
            line = f"{tag} {size:02x} {rest}"
        elif "'share.ver'" in line:
            line = line.replace(" 0f ", " 10 ")
        lines.append(line)

    with pytest.raises(ProtocolError, match="invalid ApiVersions response"):
        api_of(DescribeFeatures).read(from_hex("\n".join(lines)), 0, 4)


STATE_KEY = pack(">hh", 0, 1) + b"g" + TOPIC.bytes + pack(">i", 3)
SNAPSHOT = pack(">hiiiqqq", 0, 1, 1, 1, 0, 0, 0)
UPDATE = pack(">hiiq", 0, 1, 1, 0)


def test_null_group_in_a_key_of_a_state_record_is_a_protocol_error():
    assert "g" == read_key(STATE_KEY)[0].group_id

    with pytest.raises(ProtocolError, match="null"):
        read_key(pack(">hh", 0, -1) + STATE_KEY[5:])


@pytest.mark.parametrize(("kind", "head"), [(0, SNAPSHOT), (1, UPDATE)])
def test_null_batches_in_a_state_record_are_a_protocol_error(kind, head):
    assert () == read_value(kind, head + b"\x01\0").batches

    with pytest.raises(ProtocolError, match="null"):
        read_value(kind, head + b"\0\0")


@pytest.mark.parametrize("version", [12, 13])
def test_topic_without_a_name_is_left_out(version):
    data = with_null(metadata(version)[0], ("topics", 0, "name"))

    assert {} == api_of(TopicMetadataRequest).read(data, 0, version).topics
