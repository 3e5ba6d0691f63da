"""Kafka properties files: parsing, `load_security`, and errors."""

import ssl
from base64 import urlsafe_b64decode
from http.server import BaseHTTPRequestHandler, HTTPServer
from json import loads
from threading import Thread
from urllib.parse import parse_qs

import anyio
import pytest

from sharecons import Security, load_security
from sharecons.errors import ConfigurationError
from sharecons.properties import files
from sharecons.properties.errors import PropertyError
from sharecons.properties.jaas import parse_options
from sharecons.properties.known_properties import unknown_warning
from tests.config.authority import PASSWORD

MODULE = "org.apache.kafka.common.security"
PLAIN = f"{MODULE}.plain.PlainLoginModule required"
BEARER = f"{MODULE}.oauthbearer.OAuthBearerLoginModule required"
PLAIN_SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
TLS = {"security.protocol": "SSL"}
TOKENS = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"


def security(*mappings, **more):
    merged = {}
    for mapping in mappings:
        merged |= mapping
    return load_security(merged | more)


def error_of(*mappings):
    with pytest.raises(ConfigurationError) as caught:
        security(*mappings)
    return str(caught.value)


# The file.


def read(tmp_path, data):
    file = tmp_path / "client.properties"
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    return files.read_properties(file)


def test_file_is_parsed_as_java_does(tmp_path):
    text = r"""
# a comment
! another
plain=value
spaced : value = with : marks
bare value
empty=
escaped\ name=a\tb\u00e9\=\\c
long=one,\
     two,\
     three
last=1
"""
    assert [
        ("plain", "value", 4),
        ("spaced", "value = with : marks", 5),
        ("bare", "value", 6),
        ("empty", "", 7),
        ("escaped name", "a\tbé=\\c", 8),
        ("long", "one,two,three", 9),
        ("last", "1", 12),
    ] == read(tmp_path, text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_utf_8_and_latin_1_are_decoded(tmp_path, encoding):
    assert [("a", "müller", 1)] == read(tmp_path, "a=müller\r\n".encode(encoding))


def test_invalid_escape_is_reported_with_its_line(tmp_path):
    with pytest.raises(ConfigurationError, match=r"client.properties, line 3: \\u12"):
        read(tmp_path, "a=1\n\npassword=\\u12x\n")


def test_missing_file_is_rejected(tmp_path):
    with pytest.raises(ConfigurationError, match="none.properties: No such file"):
        files.read_properties(tmp_path / "none.properties")


def test_directory_as_a_file_is_rejected(tmp_path):
    with pytest.raises(ConfigurationError, match="Is a directory"):
        files.read_properties(tmp_path)


def test_binary_file_is_rejected(tmp_path):
    with pytest.raises(ConfigurationError, match="not a properties file"):
        read(tmp_path, b"\xfe\xed\xfe\xed\x00\x00\x00\x02")


# JAAS.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('M required username="alice" password="a b";', ("alice", "a b")),
        ("M required username='alice' password='x\"y';", ("alice", 'x"y')),
        ("  M  REQUIRED username=alice\n password=secret ; ", ("alice", "secret")),
        (r'M required username="a" password="q\"uo\\te\061;=";', ("a", 'q"uo\\te1;=')),
        ('M optional username = "a" password = "";', ("a", "")),
        (r'M required username="\9" password="\8٣";', ("9", "8٣")),
    ],
)
def test_jaas_options_are_parsed(text, expected):
    options = parse_options(text)

    assert expected == (options["username"], options["password"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "semicolon"),
        ('M required username="alice" password="hush"', "semicolon"),
        ('M username="hush";', "required"),
        ("M;", "required"),
        ('M required username="hush;', "quotation mark"),
        ('M required username "hush";', "as in username"),
        ('M required username=="hush";', "as in username"),
        ('M required username="hush" password;', "as in username"),
        ('M required a=hush; N required b="hush";', "one login module"),
    ],
)
def test_invalid_jaas_config_is_rejected(text, expected):
    with pytest.raises(PropertyError, match=expected) as caught:
        parse_options(text)
    assert "hush" not in str(caught.value)


# SASL.


def test_no_properties_mean_plain_tcp():
    assert "PLAINTEXT" == security({}).protocol
    assert "PLAINTEXT" == security({"sasl.username": "unused"}).protocol


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_username_and_password_from_jaas(mechanism):
    found = security(
        PLAIN_SASL,
        {
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{PLAIN} username="alice" password="hush";',
        },
    )

    assert "SASL_PLAINTEXT" == found.protocol
    assert (mechanism, "alice", "hush") == (
        found.credentials.mechanism,
        found.credentials.username,
        found.credentials.password,
    )


def test_librdkafka_names_are_accepted():
    found = security(
        {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanisms": "SCRAM-SHA-256",
            "sasl.username": "alice",
            "sasl.password": "hush",
        }
    )

    assert "SCRAM-SHA-256" == found.credentials.mechanism
    assert "alice" == found.credentials.username


def test_jaas_config_overrides_username_and_password():
    login = f'{PLAIN} username="alice" password="hush";'
    found = security(
        PLAIN_SASL,
        {"sasl.username": "bob", "sasl.password": "x", "sasl.jaas.config": login},
    )

    assert "alice" == found.credentials.username


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"security.protocol": "TLS"}, "security.protocol: must be one of PLAINTEXT"),
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism: GSSAPI is not supported"),
        ({}, "sasl.username: missing: PLAIN needs it, or username in sasl.jaas"),
        ({"sasl.username": "a"}, "sasl.password: missing"),
        (
            {"sasl.jaas.config": f"{PLAIN} username=a password=b tokenauth=true;"},
            "delegation tokens",
        ),
    ],
)
def test_missing_sasl_property_is_reported(properties, expected):
    assert expected in error_of(PLAIN_SASL, properties)


def test_unsupported_default_mechanism_is_reported_as_default():
    message = error_of({"security.protocol": "SASL_SSL"}, {"ssl.ca.location": ""})

    assert "GSSAPI (Kafka's default) is not supported; use one of PLAIN" in message


# Tokens.


def token_of(found):
    token = found.credentials.token()
    return token if isinstance(token, str) else anyio.run(lambda: token)


def test_unsecured_token_has_claims_and_lifetime():
    found = security(
        TOKENS,
        {
            "sasl.jaas.config": f'{BEARER} unsecuredLoginStringClaim_sub="alice" '
            'extension_tenant="t1";'
        },
    )

    header, claims, signature = token_of(found).split(".")
    body = loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert ("alice", 3600) == (body["sub"], round(body["exp"] - body["iat"]))
    assert "" == signature
    assert header
    assert {"tenant": "t1"} == found.credentials.extensions


@pytest.mark.parametrize("lifetime", ["soon", "", "nan", "1e999"])
def test_lifetime_of_an_unsecured_token_that_is_no_number_is_an_error(lifetime):
    options = (
        f'unsecuredLoginStringClaim_sub="a" unsecuredLoginLifetimeSeconds="{lifetime}"'
    )

    error = error_of(TOKENS, {"sasl.jaas.config": f"{BEARER} {options};"})

    assert "unsecuredLoginLifetimeSeconds must be a number of seconds" in error


def test_token_file_that_is_no_url_is_an_error():
    assert f"{ENDPOINT}: 'file://[' is not a URL" in error_of(
        TOKENS, {ENDPOINT: "file://["}
    )


@pytest.mark.parametrize(
    "name", ["ssl.truststore.certificates", "client.id", "sasl.oauthbearer.client.id"]
)
def test_value_with_a_lone_surrogate_is_an_error(name):
    error = error_of({name: "a\ud800"})

    assert f"{name}: must be valid Unicode: it has a lone surrogate at index 1" in error


def test_token_file_is_read_each_time(tmp_path):
    file = tmp_path / "token"
    found = security(TOKENS, {ENDPOINT: file.as_uri()})

    for token in ("first", "second"):
        file.write_text(f"{token}\n")
        assert token == token_of(found)


class TokenServer(BaseHTTPRequestHandler):
    response = b'{"access_token": "abc", "expires_in": 3600}'
    status = 200

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.append((self.headers["Authorization"], parse_qs(body.decode())))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.response)

    def log_message(self, *args):
        pass


@pytest.fixture
def token_server():
    """Return a server that responds once."""

    class Handler(TokenServer):
        pass

    Handler.received = []
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        Handler.url = f"http://127.0.0.1:{server.server_port}/token"
        yield Handler
        thread.join()


def properties_of(server, **options):
    given = {"clientId": "me", "clientSecret": "hush", **options}
    listed = " ".join(f'{name}="{value}"' for name, value in given.items())
    return security(
        TOKENS, {ENDPOINT: server.url, "sasl.jaas.config": f"{BEARER} {listed};"}
    )


async def fetch_token(found):
    return await found.credentials.token()


def test_token_endpoint_gets_client_credentials(token_server):
    found = properties_of(token_server, scope="kafka")

    assert "abc" == anyio.run(fetch_token, found)
    [(login, form)] = token_server.received
    assert "Basic bWU6aHVzaA==" == login
    assert {"grant_type": ["client_credentials"], "scope": ["kafka"]} == form


@pytest.mark.parametrize(
    ("status", "response", "expected"),
    [
        (401, b"", "401"),
        (200, b"no", "returned no access_token"),
        (200, b"{}", "returned no access_token"),
        (200, b'{"access_token": null}', "returned no access_token"),
    ],
)
def test_token_endpoint_without_a_token_is_an_error(
    token_server, status, response, expected
):
    token_server.status, token_server.response = status, response

    with pytest.raises(OSError, match=expected):
        anyio.run(fetch_token, properties_of(token_server))


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, f"{ENDPOINT}: missing"),
        ({ENDPOINT: "ftp://x"}, "the http, https or file URL"),
        ({ENDPOINT: "https://x/token"}, "needs clientId and clientSecret"),
    ],
)
def test_missing_token_source_is_reported(properties, expected):
    assert expected in error_of(TOKENS, properties)


def test_properties_without_an_effect_are_logged(caplog):
    security({"sasl.username": "alice", "sasl.password": "secret", "ssl.cafile": "x"})

    unknown, no_protocol = caplog.messages
    assert "unknown property ssl.cafile" in unknown
    assert "sasl.* properties have no effect without security.protocol" in no_protocol
    assert "secret" not in caplog.text


# TLS.


def trusted_certificates(found):
    return len(found.ssl_context.get_ca_certs())


def test_system_certificates_by_default():
    context = security(TLS).ssl_context

    assert context.check_hostname
    assert ssl.CERT_REQUIRED == context.verify_mode


def test_properties_offer_no_tls_below_1_2(authority):
    for properties in ({}, {"ssl.ca.location": str(authority.ca_file)}):
        context = security(TLS, properties).ssl_context
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("name", ["ssl.truststore.location", "ssl.ca.location"])
def test_trusted_certificates_as_pem(authority, name):
    assert 1 == trusted_certificates(security(TLS, {name: str(authority.ca_file)}))


def test_trusted_certificates_as_pkcs12(authority):
    """The type of the store is ignored: Java also detects it from the file."""
    found = security(
        TLS,
        {
            "ssl.truststore.location": str(authority.trust_store()),
            "ssl.truststore.password": PASSWORD,
            "ssl.truststore.type": "JKS",
        },
    )

    assert 1 == trusted_certificates(found)


@pytest.mark.parametrize("separator", ["\n", " ", "\\n"])
def test_trusted_certificates_inside_the_properties(authority, separator):
    text = authority.ca_file.read_text().replace("\n", separator)
    if separator == "\\n":  # as written in a file, whose parser makes it a newline
        text = text.replace("\\n", "\n")

    assert 1 == trusted_certificates(
        security(TLS, {"ssl.truststore.certificates": text})
    )


@pytest.mark.parametrize("value", ["", "none"])
def test_host_name_check_can_be_disabled(value):
    found = security(TLS, {"ssl.endpoint.identification.algorithm": value})

    assert not found.ssl_context.check_hostname
    assert ssl.CERT_REQUIRED == found.ssl_context.verify_mode


def test_certificate_verification_can_be_disabled():
    found = security(TLS, {"enable.ssl.certificate.verification": "false"})

    assert ssl.CERT_NONE == found.ssl_context.verify_mode


def keystores(authority):
    pem = authority.issue("me@example.org", stem="mine")
    key, certificate = pem.read_text().split("-----BEGIN CERTIFICATE", 1)
    certificate = f"-----BEGIN CERTIFICATE{certificate}"
    (authority.directory / "mine.key").write_text(key)
    (authority.directory / "mine.crt").write_text(certificate)
    return {
        "PEM": {"ssl.keystore.location": str(pem), "ssl.keystore.type": "PEM"},
        "PKCS12": {
            "ssl.keystore.location": str(authority.key_store(pem)),
            "ssl.keystore.password": PASSWORD,
        },
        "in the file itself": {
            "ssl.keystore.key": key.replace("\n", " "),
            "ssl.keystore.certificate.chain": certificate,
        },
        "librdkafka": {
            "ssl.certificate.location": str(authority.directory / "mine.crt"),
            "ssl.key.location": str(authority.directory / "mine.key"),
        },
    }


@pytest.mark.parametrize(
    ("name", "certificate"),
    [
        ("ssl.key.location", "ssl.certificate.location"),
        ("ssl.keystore.key", "ssl.keystore.certificate.chain"),
        ("ssl.key.pem", "ssl.keystore.certificate.chain"),
    ],
)
def test_key_without_a_certificate_is_rejected(name, certificate):
    with pytest.raises(ConfigurationError, match=f"without {certificate}"):
        load_security({"security.protocol": "SSL", name: "mine.key"})


@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "in the file itself", "librdkafka"])
def test_client_certificate_is_loaded(authority, monkeypatch, kind):
    loaded = []
    load = ssl.SSLContext.load_cert_chain
    monkeypatch.setattr(
        ssl.SSLContext,
        "load_cert_chain",
        lambda *args, **more: loaded.append(load(*args, **more)),
    )

    security(TLS, keystores(authority)[kind])

    assert [None] == loaded


def test_client_certificate_from_arguments(authority):
    pem = authority.issue("me@example.org", stem="mine")

    assert "SSL" == Security.tls(ca_file=authority.ca_file, cert_file=pem).protocol


def test_invalid_store_is_rejected(authority, tmp_path):
    jks = tmp_path / "trust.jks"
    jks.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    nonsense = tmp_path / "nonsense"
    nonsense.write_bytes(b"nonsense")
    missing = tmp_path / "missing.pem"
    truncated = tmp_path / "truncated.pem"
    truncated.write_bytes(authority.ca_file.read_bytes()[:200])
    p12 = authority.trust_store()
    for file, expected in (
        (missing, "No such file"),
        (jks, "keytool -importkeystore"),
        (nonsense, "neither PEM nor PKCS12"),
        (truncated, "OpenSSL cannot read it"),
        (p12, "is the password right"),
    ):
        message = error_of(TLS, {"ssl.truststore.location": str(file)})

        assert message.startswith("ssl.truststore.location: "), message
        assert expected in message, message


def test_key_store_without_a_key_is_rejected(authority):
    properties = {
        "ssl.keystore.location": str(authority.trust_store()),
        "ssl.keystore.password": PASSWORD,
    }

    assert "contains no key" in error_of(TLS, properties)


def test_certificate_without_its_key_is_rejected(authority):
    message = error_of(TLS, {"ssl.keystore.location": str(authority.ca_file)})

    assert message.startswith("ssl.keystore.location: OpenSSL cannot read it")


# Names.


@pytest.mark.parametrize(
    "name",
    [
        "group.id",
        "auto.offset.reset",
        "ssl.cipher.suites",
        "sasl.kerberos.service.name",
        "sasl.login.callback.handler.class",
        "my.own.thing",
    ],
)
def test_property_of_other_clients_has_no_warning(name):
    assert unknown_warning(name) is None
