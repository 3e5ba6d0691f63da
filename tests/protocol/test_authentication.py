"""The SASL exchange on one connection."""

import math

import pytest
from scramp import ScramMechanism

from sharecons.errors import AuthenticationError, ConnectionFailedError
from sharecons.protocol.codes import Code
from sharecons.protocol.sasl.authentication import (
    Authentication,
    SaslAuthenticate,
    SaslAuthenticateResponse,
    SaslHandshake,
    SaslHandshakeResponse,
)
from sharecons.protocol.sasl.credentials import (
    MECHANISMS,
    OAUTHBEARER,
    SCRAM,
    Credentials,
)

PLAIN = Credentials(mechanism="PLAIN", username="alice", password="secret")
BEARER = Credentials(mechanism=OAUTHBEARER, extensions={"scope": "orders"})
NEVER = math.inf


def dialogue(credentials, token=""):
    return Authentication(credentials, broker="b:1", nonce="n0nce", token=token)


def handshaken(error=Code.NONE, mechanisms=MECHANISMS):
    return SaslHandshakeResponse(error=error, mechanisms=mechanisms)


def authenticated(payload=b"", error=Code.NONE, message=None, lifetime=0.0):
    return SaslAuthenticateResponse(
        error=error, message=message, payload=payload, session_lifetime=lifetime
    )


def shaken(credentials, token=""):
    """A dialogue after its handshake, and the payload that follows."""
    machine = dialogue(credentials, token)
    request = machine.next_request(0.0)
    assert SaslHandshake(mechanism=credentials.mechanism) == request
    machine.on_response(request, handshaken())
    return machine, machine.next_request(1.0)


def test_plain_sends_one_message():
    machine, request = shaken(PLAIN)

    assert SaslAuthenticate(payload=b"\0alice\0secret") == request
    machine.on_response(request, authenticated())
    assert machine.finished
    assert machine.error is None
    assert machine.next_request(2.0) is None
    assert machine.renew_at == NEVER


def test_session_is_renewed_well_before_its_end():
    """Reckoned from the last request: the session began after that was sent."""
    machine, request = shaken(PLAIN)

    machine.on_response(request, authenticated(lifetime=100.0))

    assert machine.renew_at == pytest.approx(1.0 + 85.0)


def test_names_and_passwords_of_any_letters():
    credentials = Credentials(mechanism="PLAIN", username="jörg", password="漢字=,")

    _, request = shaken(credentials)

    assert "\0jörg\0漢字=,".encode() == request.payload


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_with_a_server_that_knows_the_password(mechanism):
    server = scram_server(mechanism, "secret")
    machine, request = shaken(of(mechanism, "secret"))

    server.set_client_first(request.payload.decode())
    machine.on_response(request, authenticated(server.get_server_first().encode()))
    request = machine.next_request(2.0)
    server.set_client_final(request.payload.decode())
    machine.on_response(request, authenticated(server.get_server_final().encode()))

    assert machine.finished
    assert machine.error is None


def test_scram_verifies_the_server():
    """One that does not know the password cannot say the last word."""
    server = scram_server("SCRAM-SHA-256", "secret")
    machine, request = shaken(of("SCRAM-SHA-256", "secret"))

    server.set_client_first(request.payload.decode())
    machine.on_response(request, authenticated(server.get_server_first().encode()))
    request = machine.next_request(2.0)
    machine.on_response(request, authenticated(b"v=AAAAAAAAAAAAAAAAAAAAAAAAAAA="))

    assert machine.finished
    assert isinstance(machine.error, AuthenticationError)
    assert "SCRAM-SHA-256 as 'alice': invalid SCRAM server response" in str(
        machine.error
    )


@pytest.mark.parametrize(
    "nonsense", [b"", b"\xff", b"r=other,s=QSXCR+Q6sek8bf92,i=4096", b"r=n0nce,i=1"]
)
def test_scram_with_nonsense_for_a_challenge(nonsense):
    machine, request = shaken(of("SCRAM-SHA-512", "secret"))

    machine.on_response(request, authenticated(nonsense))

    assert isinstance(machine.error, AuthenticationError)
    assert machine.next_request(2.0) is None


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("password", ["a\u0007b", "\u0221"])
def test_scram_with_a_password_that_it_cannot_send(mechanism, password):
    """SASLprep (RFC 4013) forbids them."""
    machine = dialogue(of(mechanism, password))

    assert machine.next_request(0.0) is None
    assert machine.finished
    assert password not in str(machine.error)


def test_token_and_extensions():
    machine, request = shaken(BEARER, token="abc.def.")

    assert b"n,,\x01auth=Bearer abc.def.\x01scope=orders\x01\x01" == request.payload
    machine.on_response(request, authenticated())
    assert machine.error is None
    assert machine.finished


def test_rejected_token_is_confirmed_and_then_reported():
    machine, request = shaken(BEARER, token="abc")

    machine.on_response(request, authenticated(b'{"status":"invalid_token"}'))
    assert not machine.finished
    request = machine.next_request(2.0)
    assert SaslAuthenticate(payload=b"\x01") == request
    failed = authenticated(error=Code.SASL_AUTHENTICATION_FAILED, message="invalid")
    machine.on_response(request, failed)

    assert "broker b:1: OAUTHBEARER: invalid" == str(machine.error)


@pytest.mark.parametrize("token", ["", "two words", "a\x01b", "b\n"])
def test_invalid_token_is_not_sent(token):
    machine = dialogue(BEARER, token)

    assert machine.finished
    assert "the token is empty or has invalid characters" in str(machine.error)
    assert token not in str(machine.error) or not token


@pytest.mark.parametrize(
    "extensions", [{"auth": "x"}, {"a1": "x"}, {"a": "b\x01c"}, {"": "x"}]
)
def test_extensions_that_cannot_be_sent(extensions):
    credentials = Credentials(mechanism=OAUTHBEARER, extensions=extensions)

    machine = dialogue(credentials, token="abc")

    assert isinstance(machine.error, AuthenticationError)


def test_wrong_password_error_has_the_brokers_message():
    machine, request = shaken(PLAIN)

    machine.on_response(
        request,
        authenticated(
            error=Code.SASL_AUTHENTICATION_FAILED,
            message="Authentication failed: Invalid username or password",
        ),
    )

    assert machine.finished
    assert isinstance(machine.error, AuthenticationError)
    assert (
        "broker b:1: PLAIN as 'alice': Authentication failed: Invalid username or "
        "password" == str(machine.error)
    )


def test_unsupported_mechanism_error_lists_supported_ones():
    machine = dialogue(PLAIN)
    request = machine.next_request(0.0)

    machine.on_response(
        request, handshaken(Code.UNSUPPORTED_SASL_MECHANISM, ("SCRAM-SHA-512", "X"))
    )

    assert machine.finished
    assert "does not support it; it supports: SCRAM-SHA-512, X" in str(machine.error)


def test_listener_without_sasl_is_an_error():
    machine = dialogue(PLAIN)
    request = machine.next_request(0.0)

    machine.on_response(request, handshaken(Code.ILLEGAL_SASL_STATE))

    assert isinstance(machine.error, AuthenticationError)
    assert "connect without SASL" in str(machine.error)


@pytest.mark.parametrize("while_shaking", [True, False])
def test_broker_failure_is_a_retriable_error(while_shaking):
    if while_shaking:
        machine = dialogue(PLAIN)
        machine.on_response(
            machine.next_request(0.0), handshaken(Code.NETWORK_EXCEPTION)
        )
    else:
        machine, request = shaken(PLAIN)
        machine.on_response(
            request, authenticated(error=Code.NETWORK_EXCEPTION, message="later")
        )

    assert machine.finished
    assert isinstance(machine.error, ConnectionFailedError)
    assert "NETWORK_EXCEPTION" in str(machine.error)


@pytest.mark.parametrize("name", ["username", "password"])
def test_nul_characters_are_rejected(name):
    credentials = Credentials(
        mechanism="PLAIN", **{"username": "a", "password": "b", name: "x\0y"}
    )

    assert "NUL" in str(dialogue(credentials).error)


def of(mechanism, password):
    return Credentials(mechanism=mechanism, username="alice", password=password)


def scram_server(mechanism, password):
    scheme = ScramMechanism(mechanism)
    known = scheme.make_auth_info(password)
    return scheme.make_server(lambda name: known)
