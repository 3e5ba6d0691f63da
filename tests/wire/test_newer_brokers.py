"""Numbers and names that newer brokers add: each response is read as a whole.

Every error code, every int8 and every name from a fixed set is replaced, one at a time,
in a response of every API and version that the client reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module

import pytest
from kio.schema.errors import ErrorCode

from sharecons.errors import ProtocolError
from sharecons.protocol.admin.requests import DescribeClassicGroups
from sharecons.wire.codec.kio_schemas import widen
from sharecons.wire.codec.registry import API_LOCATIONS
from tests.wire.oracle import encode_entity
from tests.wire.test_admin_responses import RESPONSES, api_of, describe_groups
from tests.wire.test_garbage import consumer_responses, read

CODES = (9999, -7, 32767)
NUMBERS = (99, 127, -1, -128)
NAMES = ("Reborn", "", "\u00e9tat-\u202e")
NAME_FIELDS = {"assignor_name", "group_state", "group_type", "protocol_type"}


@dataclass(frozen=True)
class Unknown:
    """A field of a response, and the value of a newer broker in it."""

    path: tuple
    value: int | str

    def __str__(self):
        return f"{'.'.join(map(str, self.path))}-{self.value!a}"


def responses():
    for kind, make in RESPONSES:
        api = api_of(kind)
        for version in api.versions:
            entity = make(version)[0]
            yield (
                f"{make.__name__}-{version}",
                entity,
                lambda data, api=api, version=version: api.read(data, 0, version),
            )
    for entity, version in consumer_responses():
        yield (
            f"{type(entity).__name__}-{version}",
            entity,
            lambda data, entity=entity, version=version: read(entity, version, data),
        )


def unknown_values(entity, path=()):
    """Return values of newer brokers for each field."""
    for field in fields(entity):
        value = getattr(entity, field.name)
        here = (*path, field.name)
        kind = field.metadata.get("kafka_type")
        if kind == "error_code" or field.name == "acknowledge_error_code":
            yield from (Unknown(here, code) for code in CODES)
        elif kind == "int8":
            here = (*here, 0) if isinstance(value, tuple) else here
            yield from (Unknown(here, number) for number in NUMBERS)
        elif field.name in NAME_FIELDS:
            yield from (Unknown(here, name) for name in NAMES)
        elif is_dataclass(value):
            yield from unknown_values(value, here)
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            yield from unknown_values(value[0], (*here, 0))


def changed(value, path, new):
    """Copy a value of kio's into one that takes every number, with `new` at `path`."""
    if path == ():
        return new
    if isinstance(value, ErrorCode):
        return value.value
    if is_dataclass(value):
        kind = widen(type(value))
        return kind(
            **{
                field.name: changed(
                    number_if_time(field, getattr(value, field.name)),
                    path[1:] if path and path[0] == field.name else None,
                    new,
                )
                for field in fields(kind)
            }
        )
    if isinstance(value, tuple):
        return tuple(
            changed(each, path[1:] if path and path[0] == i else None, new)
            for i, each in enumerate(value)
        )
    return value


def number_if_time(field, value):
    """Return -1 for no time in a field that `widen` makes a number."""
    is_number = field.metadata.get("kafka_type") == "int64"
    return -1 if is_number and value is None else value


def shape(value):
    """Return how many parts a response has, without numbers and names."""
    if is_dataclass(value):
        return {f.name: shape(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return [shape(each) for each in value.values()]
    if isinstance(value, tuple | list):
        return [shape(each) for each in value]
    return None


def is_meant_for_all(entity, unknown):
    """Return whether the field decides how the rest of the response is read.

    ApiVersions has one error code, for all of it. The protocol type of a classic group
    says what its members' bytes are.
    """
    return entity.__api_key__ == 18 or unknown.path[-1] == "protocol_type"


CASES = [
    pytest.param(entity, read_response, unknown, id=f"{name}-{unknown}")
    for name, entity, read_response in responses()
    for unknown in unknown_values(entity)
    if not is_meant_for_all(entity, unknown)
]


@pytest.mark.parametrize(("entity", "read_response", "unknown"), CASES)
def test_unknown_value_leaves_the_rest_of_the_response(entity, read_response, unknown):
    response = read_response(
        encode_entity(changed(entity, unknown.path, unknown.value))
    )

    whole = read_response(encode_entity(entity))
    assert shape(whole) == shape(response)
    # Of metadata, only the errors of topics are read.
    is_read = entity.__api_key__ != 3 or unknown.path == ("topics", 0, "error_code")
    if unknown.value in CODES and is_read:
        assert str(unknown.value) in str(response)


def test_every_api_has_a_response_with_an_unknown_value():
    covered = {case.values[0].__api_key__ for case in CASES}

    places = [home.split(".") for home in API_LOCATIONS.values()]
    apis = [getattr(import_module(f"sharecons.wire.{m}"), name) for m, name in places]
    # ApiVersions is below, Fetch in test_fetch.
    assert {api.key for api in apis} - {18, 1} == covered


@pytest.mark.parametrize("code", CODES)
def test_unknown_error_code_of_api_versions_names_the_code(code):
    (entity, *_) = [each for each, _ in consumer_responses() if each.__api_key__ == 18]

    with pytest.raises(ProtocolError, match=f"error code {code}"):
        read(entity, 0, encode_entity(changed(entity, ("error_code",), code)))


@pytest.mark.parametrize("protocol_type", NAMES)
def test_members_of_an_unknown_protocol_are_listed(protocol_type):
    entity = describe_groups(6)[0]
    path = ("groups", 0, "protocol_type")
    data = encode_entity(changed(entity, path, protocol_type))

    (member,) = api_of(DescribeClassicGroups).read(data, 0, 6)["g"].value.members

    assert ("m", (), ()) == (member.member_id, member.subscription, member.assignment)
