"""Bytes that are no response: ProtocolError, and nothing else, for every API.

kio reserves memory for as many elements as the count of an array, and aborts the
process if the system has less memory. This must not happen either.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from sharecons.errors import ProtocolError
from sharecons.wire.api_versions import read_versions
from sharecons.wire.consumer_apis import APIS
from sharecons.wire.get_telemetry_subscriptions import GET_TELEMETRY_SUBSCRIPTIONS
from sharecons.wire.push_telemetry import PUSH_TELEMETRY
from tests.wire.oracle import (
    encode_entity,
    from_hex,
    read_as_bytes_and_view,
    response_of,
    schema,
)

ALL = (*APIS.values(), GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY)
BY_KEY = {api.key: api for api in ALL}


def consumer_responses():
    """Yield a response of each API and version, with every field set."""
    yield response_of("ApiVersions", 0, error_code=ErrorCode.unsupported_version), 0
    feature = schema("api_versions", 3).response.FinalizedFeatureKey(
        name="f", max_version_level=1, min_version_level=1
    )
    yield response_of("ApiVersions", 3, finalized_features=(feature,)), 3
    for api in BY_KEY.values():
        for version in api.versions:
            yield response_of(api.name, version), version


def read(entity, version, data):
    if entity.__api_key__ == 18:
        return read_versions(data, 0)
    api = BY_KEY[entity.__api_key__]
    if entity.__api_key__ == 78:
        return read_as_bytes_and_view(lambda frame: api.read(frame, 0, version), data)
    return api.read(data, 0, version)


every_response = pytest.mark.parametrize(
    ("entity", "version"),
    [
        pytest.param(entity, version, id=f"{type(entity).__name__}-{version}")
        for entity, version in consumer_responses()
    ],
)


@every_response
def test_complete_response_is_decoded(entity, version):
    read(entity, version, encode_entity(entity))


@every_response
def test_truncated_response_is_rejected(entity, version):
    data = encode_entity(entity)

    for length in range(len(data)):
        with pytest.raises(ProtocolError):
            read(entity, version, data[:length])


@every_response
def test_bytes_after_a_response_are_rejected(entity, version):
    with pytest.raises(ProtocolError, match="1 bytes after its end"):
        read(entity, version, encode_entity(entity) + b"\x00")


@every_response
def test_response_with_a_changed_byte_is_decoded_or_rejected(entity, version):
    """Some changes result in a valid response; all others raise ProtocolError."""
    data = encode_entity(entity)

    for position in range(len(data)):
        for byte in (0x00, 0x01, 0x7F, 0x80, 0xFF):
            changed = data[:position] + bytes((byte,)) + data[position + 1 :]
            _read_or_protocol_error(entity, version, changed)


@every_response
@given(data=st.binary(max_size=200))
@example(data=b"\xff" * 200)
@example(data=b"\x00" * 200)
def test_random_bytes(entity, version, data):
    _read_or_protocol_error(entity, version, data)


@every_response
@given(data=st.data())
def test_response_with_replaced_bytes_is_decoded_or_rejected(entity, version, data):
    whole = encode_entity(entity)
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, len(whole)))
    piece = data.draw(st.binary(max_size=8))

    _read_or_protocol_error(entity, version, whole[:start] + piece + whole[stop:])


def _read_or_protocol_error(entity, version, data):
    try:
        read(entity, version, data)
    except ProtocolError:
        pass


@pytest.mark.parametrize(
    "count", ["ffffffff0f", "ffffffff07", "ffffff7f", "8080808001"]
)
def test_count_above_the_number_of_bytes_is_rejected(count):
    # Without `kio_guard`, kio aborts the process for the first of these.
    response = from_hex("00000000 0000 00 00007530" + count + "01 00")

    with pytest.raises(ProtocolError):
        BY_KEY[78].read(response, 0, 2)


def test_count_above_the_number_of_bytes_is_rejected_in_the_legacy_format():
    with pytest.raises(ProtocolError):
        read_versions(from_hex("0023 7fffffff"), 0)


def test_varint_that_does_not_end_is_rejected():
    with pytest.raises(ProtocolError):
        BY_KEY[78].read(from_hex("00000000 0000 00 00007530 ffffffffffff01"), 0, 2)


def test_text_that_is_not_utf_8_is_rejected():
    with pytest.raises(ProtocolError):
        BY_KEY[78].read(from_hex("00000000 0000 02 ff 00007530 01 01 00"), 0, 2)


@pytest.mark.parametrize("version", [1, 2])
def test_tagged_fields_of_newer_brokers_are_skipped(version):
    """Put tagged fields of several numbers and sizes into every struct."""
    tags = "03 00 01 ff 7f 00 ac02 02 abcd"
    plain = """
        00000000 0000 00 00007530                     throttle, error, message, lock
        02 00112233445566778899aabbccddeeff           one topic
          02 00000000 0000 00 0000 00                 one partition
            00000001 00000005 TAGS                    leader
            04 'xyz'                                  records
            03 000000000000000a 000000000000000c 0001 TAGS
               000000000000000e 000000000000000e 0003 TAGS
          TAGS
        TAGS
        02 00000003 02 'b' 00002384 00 TAGS           node endpoints
        TAGS
    """

    def response(instead):
        return BY_KEY[78].read(from_hex(plain.replace("TAGS", instead)), 0, version)

    assert response("00") == response(tags)
