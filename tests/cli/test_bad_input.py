"""What goes wrong before or on the way: one clear line each, and an exit code of it."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from sharecons.cli.exit_codes import ExitCode
from sharecons.testing import EmbeddedBroker
from sharecons.testing.kafka.ports import free_ports
from tests.broker.clients import new_name, until
from tests.cli.run_cli import run_cli

NOON = ["--to-datetime", "noon"]


def the_line(answer):
    assert "Traceback" not in answer.err
    assert 1 == len(answer.lines), answer.err
    return answer.lines[0]


def test_a_broker_that_cannot_be_reached():
    (port,) = free_ports(1)

    answer = run_cli(
        "groups", "list", "--bootstrap-server", f"127.0.0.1:{port}", "--timeout", "300"
    )

    assert ExitCode.UNREACHABLE == answer.code
    assert f"127.0.0.1:{port}" in the_line(answer)


def test_a_closed_port_ends_a_command_after_three_seconds():
    (port,) = free_ports(1)
    began = time.monotonic()

    answer = run_cli("groups", "list", "--bootstrap-server", f"127.0.0.1:{port}")

    assert ExitCode.UNREACHABLE == answer.code
    assert "tried for 3." in the_line(answer)
    assert time.monotonic() - began < 10


def test_a_broker_that_starts_a_second_later_is_waited_for():
    (port,) = free_ports(1)
    where = f"127.0.0.1:{port}"
    with ThreadPoolExecutor() as threads:
        pending = threads.submit(run_cli, "groups", "list", "--bootstrap-server", where)
        time.sleep(1.5)
        with EmbeddedBroker(port=port):
            answer = pending.result()

    assert ExitCode.SUCCESS == answer.code, answer.err


def test_no_broker_named(monkeypatch):
    for name in [name for name in os.environ if name.startswith("SHARECONS_")]:
        monkeypatch.delenv(name)

    answer = run_cli("groups", "list")

    assert ExitCode.USAGE == answer.code
    assert "set --bootstrap-server HOST:PORT" in the_line(answer)


def test_an_address_that_is_none():
    answer = run_cli("groups", "list", "--bootstrap-server", "localhost:port")

    assert ExitCode.USAGE == answer.code
    assert "localhost:port" in the_line(answer)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("security.protocol=TLS\n", "line 1"),
        ("\nsasl.mechanism=\\u00zz\n", "line 2"),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SECRET\n", "SECRET"),
    ],
)
def test_a_broken_properties_file(tmp_path, content, words):
    file = tmp_path / "admin.properties"
    file.write_text(content)

    answer = run_cli(
        *("groups", "list", "--bootstrap-server", "127.0.0.1:1"),
        *("--command-config", file),
    )

    assert ExitCode.USAGE == answer.code
    line = the_line(answer)
    assert str(file) in line
    assert words in line


def test_a_properties_file_that_is_not_there(tmp_path):
    answer = run_cli(
        *("groups", "list", "--bootstrap-server", "127.0.0.1:1"),
        *("--command-config", tmp_path / "none"),
    )

    assert ExitCode.USAGE == answer.code
    assert str(tmp_path / "none") in the_line(answer)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["groups", "--bogus"], "--bogus"),
        (["groups", "bogus"], "'bogus'"),
        (["groups", "list", "--timeout", "soon"], "soon"),
        (["groups", "delete"], "delete needs a group"),
        (["groups"], "give a command"),
        (["groups", "configure", "g", "--set", "novalue"], "NAME=VALUE"),
        (
            ["groups", "configure", "g", "--set", "a=1", "--unset", "a"],
            "more than once",
        ),
        (["groups", "list", "--type", "bogus"], "'bogus'"),
        (
            [
                "groups",
                "reset-offsets",
                "g",
                "--topic",
                "t",
                "--to-datetime",
                "noon",
                "--dry-run",
            ],
            "'noon'",
        ),
        ([], "COMMAND"),
        (["bogus"], "'bogus'"),
    ],
)
def test_options_that_make_no_sense(args, words):
    answer = run_cli(*args)

    assert ExitCode.USAGE == answer.code
    assert words in the_line(answer)


def test_a_topic_without_rights(any_kafka):
    topic = any_kafka.admin.create_topic(1, new_name("secret"))
    any_kafka.admin.deny_topic(topic)
    try:
        answer = run_cli(
            *("groups", "reset-offsets", new_name("group"), "--topic", topic),
            *("--to-latest", "--dry-run"),
            *("--bootstrap-server", any_kafka.bootstrap_servers),
        )
    finally:
        any_kafka.admin.allow_topic(topic)

    assert ExitCode.FORBIDDEN == answer.code
    line = answer.lines[0]
    assert f"'{topic}': TOPIC_AUTHORIZATION_FAILED" in line
    assert "no right to the topic" in line


def test_a_reader_that_goes_away_is_no_trouble():
    command = [sys.executable, "-m", "sharecons", "completion", "bash"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.close()
    said = process.stderr.read()

    assert ExitCode.PIPE_CLOSED == process.wait()
    assert "" == said
    process.stderr.close()


@contextmanager
def denied(kafka, group):
    """Forbids a group to all clients, for as long as it lasts."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    which = (ResourceType.GROUP, group, ResourcePatternType.LITERAL)
    what = ("User:ANONYMOUS", "*", AclOperation.ALL, AclPermissionType.DENY)
    binding = AclBinding(*which, *what)
    admin.create_acls([binding])[binding].result(20)
    try:
        yield
    finally:
        filtered = AclBindingFilter(*which, *what)
        admin.delete_acls([filtered])[filtered].result(20)


def is_denied(group, where):
    return run_cli("groups", "offsets", group, *where).code == ExitCode.FORBIDDEN


def test_a_group_without_rights(any_kafka):
    group = new_name("secret-group")
    where = ("--bootstrap-server", any_kafka.bootstrap_servers)
    with denied(any_kafka, group):
        until("it is denied", lambda: is_denied(group, where))
        answers = [
            run_cli("groups", *action, *where)
            for action in (
                ("offsets", group),
                ("members", group),
                ("delete", group),
                ("reset-offsets", group, "--all-topics", "--to-latest", "--execute"),
            )
        ]

    assert [ExitCode.FORBIDDEN] * 4 == [answer.code for answer in answers]
    for answer in answers:
        assert f"group '{group}': GROUP_AUTHORIZATION_FAILED" in the_line(answer)


def test_ctrl_c_ends_a_command_that_waits():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        command = ["groups", "list", "--bootstrap-server", f"127.0.0.1:{port}"]
        process = subprocess.Popen(
            [sys.executable, "-m", "sharecons", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Who runs the tests in the background has Ctrl-C ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        connection, _ = silent.accept()
        with connection:
            connection.recv(1)
            process.send_signal(signal.SIGINT)
            said = process.communicate()

    assert (ExitCode.INTERRUPTED, ("", "")) == (process.returncode, said)
