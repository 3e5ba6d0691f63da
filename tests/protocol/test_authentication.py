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


def new_dialogue(credentials, token=""):
    return Authentication(credentials, broker="b:1", nonce="n0nce", token=token)


def handshake_response(error=Code.NONE, mechanisms=MECHANISMS):
    return SaslHandshakeResponse(error=error, mechanisms=mechanisms)


def authenticate_response(payload=b"", error=Code.NONE, message=None, lifetime=0.0):
    return SaslAuthenticateResponse(
        error=error, message=message, payload=payload, session_lifetime=lifetime
    )


def after_handshake(credentials, token=""):
    """Return a dialogue after its handshake, and its next request."""
    machine = new_dialogue(credentials, token)
    request = machine.next_request(0.0)
    assert SaslHandshake(mechanism=credentials.mechanism) == request
    machine.on_response(request, handshake_response())
    return machine, machine.next_request(1.0)


def test_plain_sends_one_message():
    machine, request = after_handshake(PLAIN)

    assert SaslAuthenticate(payload=b"\0alice\0secret") == request
    machine.on_response(request, authenticate_response())
    assert machine.finished
    assert machine.error is None
    assert machine.next_request(2.0) is None
    assert machine.renew_at == NEVER


def test_session_is_renewed_well_before_its_end():
    """The lifetime counts from the last request, sent before the session began."""
    machine, request = after_handshake(PLAIN)

    machine.on_response(request, authenticate_response(lifetime=100.0))

    assert machine.renew_at == pytest.approx(1.0 + 85.0)


def test_plain_name_and_password_with_any_letters_are_sent_as_utf8():
    credentials = Credentials(mechanism="PLAIN", username="jörg", password="漢字=,")

    _, request = after_handshake(credentials)

    assert "\0jörg\0漢字=,".encode() == request.payload


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_with_the_right_password_succeeds(mechanism):
    server = scram_server(mechanism, "secret")
    machine, request = after_handshake(scram_credentials(mechanism, "secret"))

    server.set_client_first(request.payload.decode())
    machine.on_response(
        request, authenticate_response(server.get_server_first().encode())
    )
    request = machine.next_request(2.0)
    server.set_client_final(request.payload.decode())
    machine.on_response(
        request, authenticate_response(server.get_server_final().encode())
    )

    assert machine.finished
    assert machine.error is None


def test_scram_server_without_the_password_is_rejected():
    """A server without the password cannot compute the final message."""
    server = scram_server("SCRAM-SHA-256", "secret")
    machine, request = after_handshake(scram_credentials("SCRAM-SHA-256", "secret"))

    server.set_client_first(request.payload.decode())
    machine.on_response(
        request, authenticate_response(server.get_server_first().encode())
    )
    request = machine.next_request(2.0)
    machine.on_response(
        request, authenticate_response(b"v=AAAAAAAAAAAAAAAAAAAAAAAAAAA=")
    )

    assert machine.finished
    assert isinstance(machine.error, AuthenticationError)
    assert "SCRAM-SHA-256 as 'alice': invalid SCRAM server response" in str(
        machine.error
    )


@pytest.mark.parametrize(
    "nonsense", [b"", b"\xff", b"r=other,s=QSXCR+Q6sek8bf92,i=4096", b"r=n0nce,i=1"]
)
def test_scram_with_an_invalid_challenge_fails(nonsense):
    machine, request = after_handshake(scram_credentials("SCRAM-SHA-512", "secret"))

    machine.on_response(request, authenticate_response(nonsense))

    assert isinstance(machine.error, AuthenticationError)
    assert machine.next_request(2.0) is None


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("password", ["a\u0007b", "\u0221"])
def test_scram_with_a_forbidden_character_in_the_password_fails_without_a_request(
    mechanism, password
):
    """SASLprep (RFC 4013) forbids these characters."""
    machine = new_dialogue(scram_credentials(mechanism, password))

    assert machine.next_request(0.0) is None
    assert machine.finished
    assert password not in str(machine.error)


def test_token_and_extensions_are_sent():
    machine, request = after_handshake(BEARER, token="abc.def.")

    assert b"n,,\x01auth=Bearer abc.def.\x01scope=orders\x01\x01" == request.payload
    machine.on_response(request, authenticate_response())
    assert machine.error is None
    assert machine.finished


def test_rejected_token_is_confirmed_and_then_reported():
    machine, request = after_handshake(BEARER, token="abc")

    machine.on_response(request, authenticate_response(b'{"status":"invalid_token"}'))
    assert not machine.finished
    request = machine.next_request(2.0)
    assert SaslAuthenticate(payload=b"\x01") == request
    failed = authenticate_response(
        error=Code.SASL_AUTHENTICATION_FAILED, message="invalid"
    )
    machine.on_response(request, failed)

    assert "broker b:1: OAUTHBEARER: invalid" == str(machine.error)


@pytest.mark.parametrize("challenge", [b"", b'{"status":"invalid_token"}'])
def test_broker_that_rejects_a_token_without_an_error_ends_the_exchange(challenge):
    """It was confirmed again and again, for as long as the broker rejected it."""
    machine, request = after_handshake(BEARER, token="abc")
    machine.on_response(request, authenticate_response(b'{"status":"invalid_token"}'))

    machine.on_response(machine.next_request(2.0), authenticate_response(challenge))

    assert machine.next_request(3.0) is None
    assert "broker b:1: OAUTHBEARER: the broker rejects the token, and" in str(
        machine.error
    )


@pytest.mark.parametrize("token", ["", "two words", "a\x01b", "b\n"])
def test_invalid_token_is_not_sent(token):
    machine = new_dialogue(BEARER, token)

    assert machine.finished
    assert "the token is empty or has invalid characters" in str(machine.error)
    assert token not in str(machine.error) or not token


@pytest.mark.parametrize(
    "extensions", [{"auth": "x"}, {"a1": "x"}, {"a": "b\x01c"}, {"": "x"}]
)
def test_invalid_extensions_are_an_error(extensions):
    credentials = Credentials(mechanism=OAUTHBEARER, extensions=extensions)

    machine = new_dialogue(credentials, token="abc")

    assert isinstance(machine.error, AuthenticationError)


def test_wrong_password_error_has_the_brokers_message():
    machine, request = after_handshake(PLAIN)

    machine.on_response(
        request,
        authenticate_response(
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


@pytest.mark.parametrize("iterations", ["500001", "10000000", "9" * 5000])
def test_too_many_iterations_of_a_scram_server_are_an_error(iterations):
    machine, request = after_handshake(scram_credentials("SCRAM-SHA-256", "secret"))
    nonce = request.payload.decode().partition("r=")[2]

    challenge = f"r={nonce}x,s=c2FsdA==,i={iterations}"
    machine.on_response(request, authenticate_response(challenge.encode()))

    assert isinstance(machine.error, AuthenticationError)
    assert "too many iterations" in str(machine.error)


def test_unsupported_mechanism_error_lists_supported_ones():
    machine = new_dialogue(PLAIN)
    request = machine.next_request(0.0)

    machine.on_response(
        request,
        handshake_response(Code.UNSUPPORTED_SASL_MECHANISM, ("SCRAM-SHA-512", "X")),
    )

    assert machine.finished
    assert "does not support it; it supports: SCRAM-SHA-512, X" in str(machine.error)


def test_listener_without_sasl_is_an_error():
    machine = new_dialogue(PLAIN)
    request = machine.next_request(0.0)

    machine.on_response(request, handshake_response(Code.ILLEGAL_SASL_STATE))

    assert isinstance(machine.error, AuthenticationError)
    assert "connect without SASL" in str(machine.error)


@pytest.mark.parametrize("in_handshake", [True, False])
def test_broker_failure_is_a_retriable_error(in_handshake):
    if in_handshake:
        machine = new_dialogue(PLAIN)
        machine.on_response(
            machine.next_request(0.0), handshake_response(Code.NETWORK_EXCEPTION)
        )
    else:
        machine, request = after_handshake(PLAIN)
        machine.on_response(
            request,
            authenticate_response(error=Code.NETWORK_EXCEPTION, message="later"),
        )

    assert machine.finished
    assert isinstance(machine.error, ConnectionFailedError)
    assert "NETWORK_EXCEPTION" in str(machine.error)


@pytest.mark.parametrize("name", ["username", "password"])
def test_nul_character_in_name_or_password_is_rejected(name):
    credentials = Credentials(
        mechanism="PLAIN", **{"username": "a", "password": "b", name: "x\0y"}
    )

    assert "NUL" in str(new_dialogue(credentials).error)


def scram_credentials(mechanism, password):
    return Credentials(mechanism=mechanism, username="alice", password=password)


def scram_server(mechanism, password):
    scheme = ScramMechanism(mechanism)
    known = scheme.make_auth_info(password)
    return scheme.make_server(lambda name: known)
