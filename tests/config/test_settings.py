"""The sources of settings, and their precedence."""

import argparse
import subprocess
import sys

import pytest

from sharecons import Security
from sharecons.cli import client_options
from sharecons.errors import ConfigurationError
from sharecons.properties import settings

LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="alice" password="of the file";'
)
FILE = f"""
bootstrap.servers=file:9092
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config={LOGIN}
client.id=of-the-file
request.timeout.ms=7000
group.id=of-a-consumer
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "client.properties"
    path.write_text(FILE)
    return path


def load_settings(environ=None, **arguments):
    return settings.load(environ=environ or {}, **arguments)


def error_of(environ=None, **arguments):
    with pytest.raises(ConfigurationError) as caught:
        load_settings(environ, **arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_bootstrap_servers_are_sufficient():
    found = load_settings(bootstrap_servers="b:1,c:2")

    assert found == settings.ClientSettings(
        bootstrap_servers="b:1,c:2", security=Security()
    )


def test_settings_from_a_file(file):
    found = load_settings(command_config=file)

    assert "file:9092" == found.bootstrap_servers
    assert ("of-the-file", 7.0, ()) == (found.client_id, found.timeout, found.warnings)
    assert "of the file" == found.security.credentials.password


def test_environment_overrides_the_file(file):
    found = load_settings(
        {
            "SHARECONS_COMMAND_CONFIG": str(file),
            "SHARECONS_BOOTSTRAP_SERVERS": "env:9092",
            "SHARECONS_SASL_PASSWORD": "of the environment",
            "SHARECONS_CLIENT_ID": "env",
        }
    )

    assert ("env:9092", "env") == (found.bootstrap_servers, found.client_id)
    assert "alice" == found.security.credentials.username
    assert "of the environment" == found.security.credentials.password


def test_arguments_override_environment_and_file(file):
    found = load_settings(
        {
            "SHARECONS_COMMAND_CONFIG": "missing.properties",
            "SHARECONS_BOOTSTRAP_SERVERS": "env:9092",
            "SHARECONS_REQUEST_TIMEOUT_MS": "1000",
        },
        bootstrap_servers="argument:9092",
        command_config=file,
        properties={"security.protocol": "PLAINTEXT"},
        timeout=2.5,
    )

    assert ("argument:9092", 2.5) == (found.bootstrap_servers, found.timeout)
    assert found.security == Security()


def test_api_timeout_overrides_request_timeout(file):
    found = load_settings(
        command_config=file, properties={"default.api.timeout.ms": "9000"}
    )

    assert 9.0 == found.timeout


@pytest.mark.parametrize(
    "variable",
    [
        "HOME",
        "SHARECONS_COMPILE",
        "SHARECONS_PURE",
        "SHARECONS_TEST_BROKER",
        "SHARECONS_SPARK_SEED",
        # Kubernetes sets these for the services "sharecons" and "sharecons-exporter".
        "SHARECONS_PORT",
        "SHARECONS_EXPORTER_SERVICE_HOST",
        "SHARECONS_EXPORTER_SERVICE_PORT_HTTP",
        "SHARECONS_EXPORTER_PORT_9464_TCP_ADDR",
        # A property of Java's clients, which has no warning in a file either.
        "SHARECONS_SASL_LOGIN_CLASS",
    ],
)
def test_variables_of_others_have_no_warning(variable):
    assert () == load_settings({variable: "1"}, bootstrap_servers="b:1").warnings


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("SHARECONS_SECURITY_PROTCOL", "SHARECONS_SECURITY_PROTOCOL"),
        ("SHARECONS_COMAND_CONFIG", "SHARECONS_COMMAND_CONFIG"),
        ("SHARECONS_PASSWORD", "SHARECONS_SASL_PASSWORD"),
        ("SHARECONS_GROUP_ID", None),
    ],
)
def test_unknown_variable_has_a_warning(variable, near):
    [warning] = load_settings({variable: "secret"}, bootstrap_servers="b:1").warnings

    hint = f"; did you mean {near}?" if near else ""
    assert f"unknown environment variable {variable}{hint}" == warning


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (
            {"sasl.username": "alice", "sasl.password": "secret"},
            "sasl.username: sasl.* properties have no effect without security.protocol "
            "(default: PLAINTEXT); set security.protocol to SASL_SSL, or "
            "SASL_PLAINTEXT without TLS",
        ),
        (
            {"ssl.ca.location": "ca.pem"},
            "ssl.truststore.location: ssl.* properties have no effect without "
            "security.protocol (default: PLAINTEXT); set security.protocol to SSL",
        ),
        (
            {"ssl.key.password": "secret", "sasl.jaas.config": LOGIN},
            "sasl.jaas.config: sasl.* and ssl.* properties have no effect without "
            "security.protocol (default: PLAINTEXT); set security.protocol to SASL_SSL",
        ),
    ],
)
def test_missing_security_protocol_has_a_warning(properties, expected):
    found = load_settings(bootstrap_servers="b:1", properties=properties)

    assert (f"--command-property: {expected}",) == found.warnings
    assert found.security == Security()


def test_plaintext_has_no_warning_about_properties_for_sasl(file):
    found = load_settings(
        command_config=file, properties={"security.protocol": "PLAINTEXT"}
    )

    assert () == found.warnings


def test_missing_bootstrap_servers_are_an_error():
    assert "set --bootstrap-server HOST:PORT" in error_of()


def test_misspelled_property_in_a_file_has_a_warning(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=b:1\n\nssl.trustore.location=x\n")

    [warning] = load_settings(command_config=file).warnings

    assert f"{file}, line 3: unknown property ssl.trustore.location" in warning
    assert warning.endswith("did you mean ssl.truststore.location?")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "bootstrap.servers=nonsense",
            "bootstrap.servers: 'nonsense' is not host:port",
        ),
        ("bootstrap.servers=,", "bootstrap.servers: is empty"),
        ("security.protocol=TLS", "security.protocol: must be one of"),
        ("sasl.jaas.config=nonsense", "sasl.jaas.config: must end with a semicolon"),
        (
            "request.timeout.ms=soon",
            "request.timeout.ms: must be a positive number of milliseconds",
        ),
        ("a=\\u12", "\\u12 is not"),
    ],
)
def test_invalid_property_is_reported_with_file_and_line(file, line, expected):
    file.write_text(f"{FILE}{line}\n")

    message = error_of(command_config=file)

    assert message.startswith(f"{file}, line 9: ")
    assert expected in message
    assert "of the file" not in message


def test_invalid_variable_is_reported_by_its_name(file):
    message = error_of({"SHARECONS_SECURITY_PROTOCOL": "TLS"}, command_config=file)

    assert message.startswith("SHARECONS_SECURITY_PROTOCOL: security.protocol: must be")


def test_invalid_property_with_an_alias_is_reported_with_its_origin(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text(
        "bootstrap.servers=b:1\nsecurity.protocol=SSL\nssl.ca.location=/none\n"
    )

    assert error_of(command_config=file).startswith(f"{file}, line 3: ")


def test_missing_file_is_rejected():
    assert "none.properties: No such file" in error_of(command_config="none.properties")


# Options of commands.


def parse_options(*arguments):
    parser = argparse.ArgumentParser()
    client_options.add_options(parser)
    return parser.parse_args(arguments)


@pytest.mark.parametrize("option", ["--bootstrap-server", "--bootstrap-servers"])
def test_both_options_for_bootstrap_servers(option):
    assert (
        "b:1"
        == client_options.load_settings(parse_options(option, "b:1")).bootstrap_servers
    )


@pytest.mark.parametrize(
    ("text", "seconds"), [("5000", 5.0), ("20s", 20.0), ("1.5s", 1.5), ("2m", 120.0)]
)
def test_timeout_option_is_in_milliseconds(text, seconds):
    options = parse_options("--bootstrap-server", "b:1", "--timeout", text)

    assert seconds == client_options.load_settings(options).timeout


@pytest.mark.parametrize("text", ["", "soon", "-1", "0", "5h"])
def test_invalid_timeout_is_rejected(text, capsys):
    with pytest.raises(SystemExit):
        parse_options(f"--timeout={text}")
    assert "milliseconds" in capsys.readouterr().err


def test_command_property_overrides_the_file(file):
    options = parse_options(
        "--command-config",
        str(file),
        "--command-property",
        "client.id=a=b",
        "--command-property",
        "sasl.password=x",
    )

    found = client_options.load_settings(options)

    assert "a=b" == found.client_id
    assert "x" == found.security.credentials.password


def test_property_without_a_value_is_rejected(capsys):
    with pytest.raises(SystemExit):
        parse_options("--command-property", "client.id")
    assert "is not NAME=VALUE" in capsys.readouterr().err


def test_warnings_go_to_stderr(capsys):
    client_options.load_settings(
        parse_options("--bootstrap-server", "b:1", "--command-property", "sasl.user=x")
    )

    message = capsys.readouterr().err
    assert message.startswith("warning: --command-property: unknown property")


def test_help_does_not_import_settings():
    """Help must be fast."""
    program = (
        "import sys, sharecons.cli.client_options, sharecons.properties.settings;"
        "print([m for m in ('ssl', 'anyio', 'kio', 'javaproperties') "
        "if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert "[]" == done.stdout.strip()


@pytest.mark.parametrize(
    ("client_id", "reason"),
    [("a\udcff", "lone surrogate at index 1"), ("a" * 32768, "at most 32,767 bytes")],
)
def test_invalid_client_id_is_rejected(client_id, reason):
    message = error_of(bootstrap_servers="a:1", properties={"client.id": client_id})
    assert message.startswith("--command-property: client.id: must be")
    assert reason in message
