"""What goes wrong before or on the way: one clear line each, and an exit code of it."""

import os
import subprocess
import sys

import pytest

from sharecons.cli.outcome import Exit
from sharecons.testing.kafka.ports import free_ports
from tests.broker.clients import new_name
from tests.cli.asking import sharecons

NOON = ["--to-datetime", "noon"]


def the_line(answer):
    assert "Traceback" not in answer.err
    assert 1 == len(answer.lines), answer.err
    return answer.lines[0]


def test_a_broker_that_cannot_be_reached():
    (port,) = free_ports(1)

    answer = sharecons(
        "groups", "list", "--bootstrap-server", f"127.0.0.1:{port}", "--timeout", "300"
    )

    assert Exit.UNREACHABLE == answer.code
    assert f"127.0.0.1:{port}" in the_line(answer)


def test_no_broker_named(monkeypatch):
    for name in [name for name in os.environ if name.startswith("SHARECONS_")]:
        monkeypatch.delenv(name)

    answer = sharecons("groups", "list")

    assert Exit.USAGE == answer.code
    assert "give --bootstrap-server HOST:PORT" in the_line(answer)


def test_an_address_that_is_none():
    answer = sharecons("groups", "list", "--bootstrap-server", "localhost:port")

    assert Exit.USAGE == answer.code
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

    answer = sharecons(
        *("groups", "list", "--bootstrap-server", "127.0.0.1:1"),
        *("--command-config", file),
    )

    assert Exit.USAGE == answer.code
    line = the_line(answer)
    assert str(file) in line
    assert words in line


def test_a_properties_file_that_is_not_there(tmp_path):
    answer = sharecons(
        *("groups", "list", "--bootstrap-server", "127.0.0.1:1"),
        *("--command-config", tmp_path / "none"),
    )

    assert Exit.USAGE == answer.code
    assert str(tmp_path / "none") in the_line(answer)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["groups", "--bogus"], "--bogus"),
        (["groups", "bogus"], "'bogus'"),
        (["groups", "list", "--timeout", "soon"], "soon"),
        (["groups", "delete"], "delete takes a group"),
        (["groups"], "give a command"),
        (["groups", "configure", "g", "--set", "novalue"], "NAME=VALUE"),
        (["groups", "configure", "g", "--set", "a=1", "--unset", "a"], "twice"),
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
    answer = sharecons(*args)

    assert Exit.USAGE == answer.code
    assert words in the_line(answer)


def test_a_topic_without_rights(any_kafka):
    topic = any_kafka.admin.create_topic(1, new_name("secret"))
    any_kafka.admin.deny_topic(topic)
    try:
        answer = sharecons(
            *("groups", "reset-offsets", new_name("group"), "--topic", topic),
            *("--to-latest", "--dry-run"),
            *("--bootstrap-server", any_kafka.bootstrap_servers),
        )
    finally:
        any_kafka.admin.allow_topic(topic)

    assert Exit.FORBIDDEN == answer.code
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

    assert Exit.PIPE_CLOSED == process.wait()
    assert "" == said
    process.stderr.close()
