"""SaslHandshake (17) version 1 and SaslAuthenticate (36) version 2."""

from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode

from sharecons.errors import ProtocolError
from sharecons.protocol.sasl.authentication import (
    SaslAuthenticate,
    SaslAuthenticateResponse,
    SaslHandshake,
    SaslHandshakeResponse,
)
from sharecons.wire.sasl_authenticate import SASL_AUTHENTICATE
from sharecons.wire.sasl_handshake import SASL_HANDSHAKE
from tests.wire.oracle import decode_entity, encode_entity, from_hex, schema


def test_handshake():
    request = SaslHandshake(mechanism="PLAIN")

    assert from_hex("0005 'PLAIN'") == SASL_HANDSHAKE.write(request, 1)


def test_handshake_response():
    response = """
        0021            ErrorCode: UNSUPPORTED_SASL_MECHANISM
        00000003        Mechanisms: three
        0005 'PLAIN'
        000d 'SCRAM-SHA-512'
        000b 'OAUTHBEARER'
    """
    offered = ("PLAIN", "SCRAM-SHA-512", "OAUTHBEARER")
    expected = SaslHandshakeResponse(error=33, mechanisms=offered)

    assert expected == SASL_HANDSHAKE.read(from_hex(response), 0, 1)


def test_authenticate():
    request = SaslAuthenticate(payload=b"\x00a\x00b")

    assert from_hex("05 00 'a' 00 'b'  00") == SASL_AUTHENTICATE.write(request, 2)[:5]
    kind = schema("sasl_authenticate", 2).SaslAuthenticateRequest
    got = decode_entity(kind, SASL_AUTHENTICATE.write(request, 2))
    assert b"\x00a\x00b" == got.auth_bytes


def test_authenticate_response():
    response = """
        003a                  ErrorCode: SASL_AUTHENTICATION_FAILED
        03 'no'               ErrorMessage
        03 'xy'               AuthBytes
        0000000000000bb8      SessionLifetimeMs: 3000
        00                    (tagged fields)
    """
    expected = SaslAuthenticateResponse(
        error=58, message="no", payload=b"xy", session_lifetime=3.0
    )

    assert expected == SASL_AUTHENTICATE.read(from_hex(response), 0, 2)


def test_response_encoded_by_kio_is_decoded():
    v = schema("sasl_authenticate", 2).response
    response = v.SaslAuthenticateResponse(
        error_code=ErrorCode.none,
        error_message=None,
        auth_bytes=b"",
        session_lifetime=timedelta(0),
    )
    expected = SaslAuthenticateResponse(
        error=0, message=None, payload=b"", session_lifetime=0.0
    )

    assert expected == SASL_AUTHENTICATE.read(encode_entity(response), 0, 2)


def test_mechanism_count_above_the_number_of_bytes_is_rejected():
    with pytest.raises(ProtocolError, match="SaslHandshake"):
        SASL_HANDSHAKE.read(from_hex("0000 7fffffff 0005 'PLAIN'"), 0, 1)
