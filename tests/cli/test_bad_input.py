"""Errors of commands: one clear line on stderr and a matching exit code."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sharecons.cli import exit_codes
from sharecons.cli.exit_codes import ExitCode
from sharecons.testing import EmbeddedBroker
from sharecons.testing.kafka.ports import free_ports
from tests.broker.clients import new_name
from tests.cli.run_cli import run_cli


def only_error_line(result):
    assert "Traceback" not in result.err
    assert 1 == len(result.lines), result.err
    return result.lines[0]


@pytest.mark.parametrize("command", ["groups list", "produce t", "consume t --group g"])
def test_unreachable_broker_is_named_in_one_line(command):
    (port,) = free_ports(1)
    where = ("--bootstrap-server", f"127.0.0.1:{port}", "--timeout", "100")

    result = run_cli(*command.split(), *where, stdin=b"a\n")

    assert ExitCode.UNREACHABLE == result.code
    assert f"127.0.0.1:{port}" in only_error_line(result)


def test_closed_port_ends_command_after_the_connect_timeout(monkeypatch):
    assert 3.0 == exit_codes.CONNECT_TIMEOUT
    monkeypatch.setattr(exit_codes, "CONNECT_TIMEOUT", 0.1)
    (port,) = free_ports(1)

    result = run_cli("groups", "list", "--bootstrap-server", f"127.0.0.1:{port}")

    assert ExitCode.UNREACHABLE == result.code
    assert "tried for 0.1 s" in only_error_line(result)


@pytest.mark.slow("waits for the next attempt to connect")
def test_command_waits_for_broker_that_starts_later():
    (port,) = free_ports(1)
    where = f"127.0.0.1:{port}"
    with ThreadPoolExecutor() as threads:
        pending = threads.submit(run_cli, "groups", "list", "--bootstrap-server", where)
        time.sleep(0.5)  # real time: the command finds the port closed meanwhile
        with EmbeddedBroker(port=port):
            result = pending.result()

    assert ExitCode.SUCCESS == result.code, result.err


def test_missing_bootstrap_server_names_the_option(monkeypatch):
    for name in [name for name in os.environ if name.startswith("SHARECONS_")]:
        monkeypatch.delenv(name)

    result = run_cli("groups", "list")

    assert ExitCode.USAGE == result.code
    assert "set --bootstrap-server HOST:PORT" in only_error_line(result)


def test_invalid_bootstrap_server_is_named():
    result = run_cli("groups", "list", "--bootstrap-server", "localhost:port")

    assert ExitCode.USAGE == result.code
    assert "localhost:port" in only_error_line(result)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("security.protocol=TLS\n", "line 1"),
        ("\nsasl.mechanism=\\u00zz\n", "line 2"),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SECRET\n", "SECRET"),
    ],
)
def test_invalid_properties_file_is_named_with_line(tmp_path, content, words):
    file = tmp_path / "admin.properties"
    file.write_text(content)

    result = run_cli(
        *("groups", "list", "--bootstrap-server", "127.0.0.1:1"),
        *("--command-config", file),
    )

    assert ExitCode.USAGE == result.code
    line = only_error_line(result)
    assert str(file) in line
    assert words in line


def test_missing_properties_file_is_named(tmp_path):
    result = run_cli(
        *("groups", "list", "--bootstrap-server", "127.0.0.1:1"),
        *("--command-config", tmp_path / "none"),
    )

    assert ExitCode.USAGE == result.code
    assert str(tmp_path / "none") in only_error_line(result)


CONSUME = "consume t --group g"


@pytest.mark.parametrize(
    ("command", "nearest"),
    [
        ("groupz list", "'groups'"),
        ("groups lst", "'list'"),
        ("dead-letters lst t", "'list'"),
        ("completion bashh", "'bash'"),
        ("--verson", "'--version'"),
        ("groups list --jsn", "'--json'"),
        ("groups --descibe", "'--describe'"),
        ("groups inspect g --watc", "'--watch'"),
        ("peek jobs --formt=json", "'--format'"),
        ("peek jobs --format jsn", "'json'"),
        ("produce t --compression lz", "'lz4'"),
        ("groups list --type shar", "'share'"),
        ("groups list --state empt", "'Empty'"),
        (f"{CONSUME} --formatter-property print.keey=true", "'print.key'"),
        (f"{CONSUME} --value-deserializer stringg", "'string'"),
        ("produce t --reader-property parze.key=true", "'parse.key'"),
        ("dead-letters list t --filter groop=x", "'group'"),
        ("run json:dumps --topic t --group g --liveness no-thread", "'no-threads'"),
        ("consume t --groop g", "'--group'"),
        ("groups delete --grup g", "'--group'"),
        ("create-topics --tpoic t", "'--topic'"),
    ],
)
def test_misspelled_word_names_the_nearest_one(command, nearest):
    servers = [] if command == "--verson" else ["--bootstrap-server", "127.0.0.1:1"]
    result = run_cli(*command.split(), *servers)

    assert ExitCode.USAGE == result.code
    assert f"; did you mean {nearest}?" in only_error_line(result)


@pytest.mark.parametrize(
    "command",
    [
        "produce {}",
        "peek {}",
        "dead-letters list {}",
        "dead-letters show {} 0:1",
        "dead-letters redrive {} --dry-run",
        "dead-letters delete {} --before 0:1 --dry-run",
        "create-topics --topic {} --dead-letter d",
        "groups reset-offsets g --topic {} --to-latest --dry-run",
    ],
)
def test_misspelled_topic_names_the_nearest_one(any_kafka, command):
    topic = any_kafka.admin.create_topic(1, new_name("parcels"))
    words = command.format(topic.replace("parcels", "parcel")).split()

    result = run_cli(*words, "--bootstrap-server", any_kafka.bootstrap_servers)

    assert ExitCode.FAILED == result.code
    assert f"; did you mean {topic!r}?" in result.lines[0]


def test_word_that_resembles_no_other_has_no_suggestion():
    assert "did you mean" not in run_cli("groups", "--xyz").err


def test_denied_topic_exits_with_forbidden(any_kafka):
    topic = any_kafka.admin.create_topic(1, new_name("secret"))
    any_kafka.admin.deny_topic(topic)
    try:
        result = run_cli(
            *("groups", "reset-offsets", new_name("group"), "--topic", topic),
            *("--to-latest", "--dry-run"),
            *("--bootstrap-server", any_kafka.bootstrap_servers),
        )
    finally:
        any_kafka.admin.allow_topic(topic)

    assert ExitCode.FORBIDDEN == result.code
    line = result.lines[0]
    assert f"'{topic}': TOPIC_AUTHORIZATION_FAILED" in line
    assert "no right to the topic" in line


def test_denied_group_exits_with_forbidden(any_kafka):
    group = new_name("secret-group")
    where = ("--bootstrap-server", any_kafka.bootstrap_servers)
    with any_kafka.admin.denied_group(group):
        results = [
            run_cli("groups", *action, *where)
            for action in (
                ("offsets", group),
                ("members", group),
                ("delete", group),
                ("configure", group),
                ("reset-offsets", group, "--all-topics", "--to-latest", "--execute"),
            )
        ]

    assert [ExitCode.FORBIDDEN] * 5 == [result.code for result in results]
    for result in results:
        assert f"group '{group}': GROUP_AUTHORIZATION_FAILED" in only_error_line(result)


@pytest.mark.slow("starts a process")
def test_ctrl_c_ends_waiting_command():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        command = ["groups", "list", "--bootstrap-server", f"127.0.0.1:{port}"]
        process = subprocess.Popen(
            [sys.executable, "-m", "sharecons", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell that runs the tests in the background ignores SIGINT.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        connection, _ = silent.accept()
        with connection:
            connection.recv(1)
            process.send_signal(signal.SIGINT)
            output = process.communicate()

    assert (ExitCode.INTERRUPTED, ("", "")) == (process.returncode, output)


def test_ctrl_c_while_modules_are_imported_has_no_traceback(monkeypatch):
    def interrupt(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("sharecons.cli.import_module", interrupt)
    result = run_cli("groups", "list")

    assert (ExitCode.INTERRUPTED, "", "") == (result.code, result.out, result.err)
