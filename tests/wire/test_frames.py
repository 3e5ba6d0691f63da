"""Frames and headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.errors import ProtocolError
from sharecons.wire.codec.frames import (
    body_offset,
    check_no_extra_bytes,
    frame_length,
    request_frame,
)
from tests.wire.oracle import decode_entity, from_hex, schema

API_VERSIONS = 18
SASL_HANDSHAKE = 17
SHARE_FETCH = 78
LIMIT = 1000


def test_request():
    expected = from_hex("""
        0000001c               length of what follows, 28
        004e 0002              RequestApiKey, RequestApiVersion
        7fffffff               CorrelationId
        0009 'sharecons'       ClientId: two bytes of length, not one more of it
        00                     (tagged fields)
        'the-body'
    """)

    assert expected == request_frame(
        SHARE_FETCH, 2, 0x7FFFFFFF, "sharecons", b"the-body"
    )


def test_request_with_an_empty_client_id():
    expected = from_hex("0000000b 0003 000c 00000001 0000 00")

    assert expected == request_frame(3, 12, 1, "", b"")


def test_client_id_that_is_too_long_is_rejected():
    with pytest.raises(ProtocolError, match="request's header"):
        request_frame(3, 12, 1, "x" * 0x8000, b"")


@given(
    key=st.integers(0, 100).filter(lambda key: key != SASL_HANDSHAKE),
    version=st.integers(0, 20),
    correlation_id=st.integers(0, 0x7FFFFFFF),
    client_id=st.text(max_size=20),
    body=st.binary(max_size=20),
)
def test_kio_decodes_the_header(key, version, correlation_id, client_id, body):
    from kio.schema.request_header.v2 import RequestHeader

    frame = request_frame(key, version, correlation_id, client_id, body)

    assert len(frame) == 4 + int.from_bytes(frame[:4], "big")
    header = decode_entity(RequestHeader, frame[4 : len(frame) - len(body)])
    assert (key, version, correlation_id, client_id) == (
        header.request_api_key,
        header.request_api_version,
        header.correlation_id,
        header.client_id,
    )


def test_request_of_sasl_handshake_has_no_tagged_fields():
    """The API has no flexible version: Kafka would read them as the body."""
    from kio.schema.request_header.v1 import RequestHeader

    frame = request_frame(SASL_HANDSHAKE, 1, 7, "me", b"the-body")

    header = decode_entity(RequestHeader, frame[4 : -len(b"the-body")])
    assert ("me", 7) == (header.client_id, header.correlation_id)
    assert len(frame) == 4 + int.from_bytes(frame[:4], "big")


@pytest.mark.parametrize("length", [4, 5, LIMIT])
def test_length_within_bounds(length):
    assert length == frame_length(length.to_bytes(4, "big"), LIMIT)


@pytest.mark.parametrize("length", [-(1 << 31), -1, 0, 3])
def test_invalid_length_is_rejected(length):
    with pytest.raises(ProtocolError, match=f"length {length}:"):
        frame_length(length.to_bytes(4, "big", signed=True), LIMIT)


@pytest.mark.parametrize("length", [LIMIT + 1, 0x7FFFFFFF])
def test_length_above_the_limit_is_rejected(length):
    with pytest.raises(ProtocolError, match="not a Kafka listener.*max_bytes"):
        frame_length(length.to_bytes(4, "big"), LIMIT)


@pytest.mark.parametrize(
    ("greeting", "kind"),
    [
        (b"\x15\x03\x01\x00", "a TLS port: set security="),
        (b"\x15\x03\x03\x00", "a TLS port: set security="),
        (b"\x16\x03\x03\x00", "a TLS port: set security="),
        (b"HTTP", "an HTTP port"),
    ],
)
def test_tls_and_http_ports_are_named(greeting, kind):
    with pytest.raises(ProtocolError, match=kind):
        frame_length(greeting, 256 << 20)


@pytest.mark.parametrize("greeting", [b"HTTP", b"\x15\x03\x03\x00", b"SSH-"])
def test_other_protocols_are_rejected_by_the_length(greeting):
    with pytest.raises(ProtocolError, match="not a (plaintext )?Kafka listener"):
        frame_length(greeting, 256 << 20)


@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_body_begins_after_the_header(kind):
    assert 5 == body_offset(kind(from_hex("0000002a 00 ff")), SHARE_FETCH, 42)


@pytest.mark.parametrize("key", [API_VERSIONS, SASL_HANDSHAKE])
def test_body_begins_after_the_correlation_id_in_header_version_0(key):
    assert 4 == body_offset(from_hex("0000002a 0000"), key, 42)


@pytest.mark.parametrize("kind", [bytes, memoryview])
@pytest.mark.parametrize("got", [-1, 41, 43, 42 << 8, 42 << 24])
def test_response_to_another_request_is_rejected(got, kind):
    frame = kind(got.to_bytes(4, "big", signed=True) + b"\x00")

    with pytest.raises(ProtocolError, match=f"request {got} instead of 42"):
        body_offset(frame, SHARE_FETCH, 42)


@pytest.mark.parametrize("rest", ["", "01 00 00", "80"])
def test_header_that_is_truncated_or_has_tagged_fields_is_rejected(rest):
    with pytest.raises(ProtocolError, match="header"):
        body_offset(from_hex("0000002a" + rest), SHARE_FETCH, 42)


def test_frame_without_extra_bytes():
    check_no_extra_bytes(5, 5)


def test_bytes_after_a_response_are_rejected():
    with pytest.raises(ProtocolError, match="2 unexpected bytes after a response of 5"):
        check_no_extra_bytes(7, 5)


def test_every_version_uses_the_encoded_header_versions():
    """Only flexible versions have request header 2 and response header 1."""
    from sharecons.wire.consumer_apis import APIS

    inflexible = {SASL_HANDSHAKE: (1, 0)}
    for api in APIS.values():
        headers = inflexible.get(api.key, (2, 1))
        for version in api.versions:
            module = schema(_snake(api.name), version)
            request = getattr(module, f"{api.name}Request")
            response = getattr(module, f"{api.name}Response")

            assert headers == (
                request.__header_schema__.__version__,
                response.__header_schema__.__version__,
            ), api.name
            assert request.__api_key__ == api.key, api.name


def _snake(name):
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
