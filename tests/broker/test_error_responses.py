"""Error responses: each API in each version, decoded again."""

from dataclasses import fields, is_dataclass
from typing import get_args, get_origin

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map

from sharecons.testing.broker.apis import APIS
from sharecons.testing.broker.codec import (
    Header,
    encode_response,
    load_request_schema,
)
from sharecons.testing.broker.error_responses import error_response
from tests.broker.messages import decode_response, make_request

CODE = ErrorCode.not_coordinator
EVERY = [(api, version) for api in APIS.values() for version in api.versions]


def one_of_each(kind):
    """Return a struct whose arrays have one element each."""
    values = {}
    for field in fields(kind):
        arrays = [field.type, *get_args(field.type)]
        array = next((each for each in arrays if get_origin(each) is tuple), None)
        if array is None:
            continue
        inner = get_args(array)[0]
        if is_dataclass(inner):
            values[field.name] = [one_of_each(inner)]
        elif field.metadata.get("kafka_type") == "string":
            values[field.name] = ["x"]
        else:
            values[field.name] = [7]
    return values


def full_request(api, version):
    kind = load_request_schema(api.key, version)
    return make_request(api_key_map[api.key], version, **one_of_each(kind))


def rejected(api, version, **options):
    header = Header(api.key, version, 1, "test")
    fields = error_response(full_request(api, version), header, CODE, **options)
    frame = encode_response(header, fields, version)[4:]
    return decode_response(frame, api.key, version)


def codes(response):
    """Return every error code in a response except `none`."""
    for field in fields(response):
        value = getattr(response, field.name)
        if field.metadata.get("kafka_type") == "error_code" and value:
            yield value
        elif isinstance(value, tuple):
            for each in value:
                if is_dataclass(each):
                    yield from codes(each)


@pytest.mark.parametrize(
    ("api", "version"), EVERY, ids=[f"{a.name}-{v}" for a, v in EVERY]
)
def test_every_api_version_has_the_error_once(api, version):
    assert [CODE] == list(codes(rejected(api, version)))
    assert [CODE] == list(codes(rejected(api, version, each=True)))


def test_each_part_gets_the_error():
    (topic,) = rejected(APIS[0], 12).responses
    (partition,) = topic.partition_responses
    assert ("", 0) == (topic.name, partition.index)

    (coordinator,) = rejected(APIS[10], 6).coordinators
    assert "x" == coordinator.key


def test_share_fetch_error_is_at_the_top_or_in_parts():
    whole, parts = rejected(APIS[78], 2), rejected(APIS[78], 2, each=True)
    assert (CODE, ()) == (whole.error_code, whole.responses)
    assert ErrorCode.none is parts.error_code
    assert CODE is parts.responses[0].partitions[0].error_code
