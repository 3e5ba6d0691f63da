"""`Security`: its arguments, repr and equality."""

import pickle
import ssl

import pytest

from sharecons import Security
from sharecons.errors import ConfigurationError


def test_repr_shows_no_secret():
    for security in (
        Security.sasl("PLAIN", "alice", "hush", tls=False),
        Security.sasl("SCRAM-SHA-512", "alice", "hush"),
        Security.oauthbearer(lambda: "hush", extensions={"key": "hush"}),
    ):
        assert "hush" not in repr(security)
        assert "hush" not in repr(security.credentials)
        assert "hush" not in str(security)


def test_repr_shows_protocol_mechanism_and_username():
    security = Security.sasl("SCRAM-SHA-512", "alice", "hush")

    assert "<Security SASL_SSL, SCRAM-SHA-512 as 'alice'>" == repr(security)
    assert "<Security SSL>" == repr(Security.tls())
    assert "<Security PLAINTEXT>" == repr(Security())


def test_tls_below_1_2_is_not_offered():
    context = Security.tls().ssl_context

    assert context is not None
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_sasl_uses_tls_by_default():
    assert "SASL_SSL" == Security.sasl("PLAIN", "alice", "hush").protocol
    plain = Security.sasl("PLAIN", "alice", "hush", tls=False)
    assert "SASL_PLAINTEXT" == plain.protocol
    assert "SASL_SSL" == Security.oauthbearer(lambda: "token").protocol


def test_sasl_accepts_a_context_or_a_security_as_tls():
    context = ssl.create_default_context()
    tls = Security.tls(context)

    for given in (context, tls):
        security = Security.sasl("PLAIN", "alice", "hush", tls=given)
        assert context is security.ssl_context


@pytest.mark.parametrize("mechanism", ["GSSAPI", "OAUTHBEARER", "plain", ""])
def test_mechanism_without_a_password_is_rejected(mechanism):
    with pytest.raises(ConfigurationError, match="mechanism must be one of PLAIN"):
        Security.sasl(mechanism, "alice", "hush")


@pytest.mark.parametrize("name", ["", None, 3])
def test_invalid_username_is_rejected(name):
    with pytest.raises(ConfigurationError, match="username"):
        Security.sasl("PLAIN", name, "hush")


def test_token_must_be_callable():
    with pytest.raises(ConfigurationError, match="token must be a function"):
        Security.oauthbearer("hush")


@pytest.mark.parametrize("extensions", [{"tenant": 1}, {1: "x"}, ["tenant"], "x"])
def test_extensions_must_map_str_to_str(extensions):
    with pytest.raises(ConfigurationError, match="extensions must map str to str"):
        Security.oauthbearer(lambda: "token", extensions=extensions)


def test_missing_files_are_rejected(tmp_path, authority):
    missing = tmp_path / "missing.pem"
    for given in ({"ca_file": missing}, {"cert_file": missing}):
        with pytest.raises(
            ConfigurationError, match=f"{next(iter(given))}.*missing.pem"
        ):
            Security.tls(**given)


@pytest.mark.parametrize("tls", [None, "", 0, 1, "ca.pem", {}])
def test_tls_of_another_type_is_rejected_and_not_taken_for_false(tls):
    for new in (
        lambda: Security.sasl("PLAIN", "alice", "hush", tls=tls),
        lambda: Security.oauthbearer(lambda: "token", tls=tls),
    ):
        with pytest.raises(ConfigurationError, match=r"tls must be True.* not a"):
            new()


@pytest.mark.parametrize("name", ["key_file", "key_password"])
def test_key_without_a_certificate_is_rejected(name):
    with pytest.raises(ConfigurationError, match=f"{name} needs cert_file"):
        Security.tls(**{name: "client.key"})


def test_context_with_other_arguments_is_rejected(authority):
    context = ssl.create_default_context()

    with pytest.raises(ConfigurationError, match="context"):
        Security.tls(context, ca_file=authority.ca_file)


def test_equal_values_are_equal():
    one, other = (Security.sasl("PLAIN", "a", "b", tls=False) for _ in range(2))

    assert one == other
    assert one == pickle.loads(pickle.dumps(one))
