"""Output that cannot be written or encoded, and arguments that cannot be decoded."""

import json
import os
import subprocess
import sys

import pytest

from sharecons.testing import EmbeddedBroker
from tests.cli.run_cli import run_cli
from tests.cli.unsafe_characters import unsafe_characters

SHARECONS = (sys.executable, "-m", "sharecons")
UNREACHABLE = ("--bootstrap-server", "localhost:1", "--timeout", "300")


def set_start_offset(broker, group):
    where = ("--topic", "jobs", "--to-earliest", "--execute")
    servers = ("--bootstrap-server", broker.bootstrap_servers)
    result = run_cli("groups", "reset-offsets", group, *where, *servers)
    assert 0 == result.code


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker(topics={"jobs": 1}) as broker:
        broker.produce("jobs", ["one"])
        set_start_offset(broker, "workers")
        yield broker


def run(*args, **options):
    """Run a command in a process of its own."""
    return subprocess.run(
        [*SHARECONS, *args],
        capture_output="stdout" not in options,
        stderr=None if "stdout" not in options else subprocess.PIPE,
        timeout=60,
        check=False,
        **options,
    )


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "ascii:strict", "latin-1"])
@pytest.mark.parametrize(
    "command",
    [
        ("peek", "jobs"),
        ("peek", "jobs", "--format", "json"),
        ("groups", "inspect", "日本\u0416"),
        ("groups", "list"),
    ],
    ids=" ".join,
)
def test_unencodable_output_is_escaped(encoding, command):
    with EmbeddedBroker(topics={"jobs": 1}) as broker:
        broker.produce("jobs", ['{"日本": "\U0001f600\u20ac"}'], keys=["\u0416"])
        set_start_offset(broker, "日本\u0416")
        ended = run(
            *(*command, "--bootstrap-server", broker.bootstrap_servers),
            env={**os.environ, "PYTHONIOENCODING": encoding},
        )

    assert (0, b"") == (ended.returncode, ended.stderr)
    text = ended.stdout.decode(encoding.partition(":")[0])
    assert set() == unsafe_characters(text)
    if "json" in command:
        value = json.loads(text.strip().rpartition("  value=")[2])
        assert {"日本": "\U0001f600\u20ac"} == value


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize(
    "command",
    [
        ("completion", "bash"),
        ("--help",),
        ("--version",),
        ("groups", "list"),
        ("groups", "list", "--json"),
        ("groups", "inspect", "workers"),
        ("peek", "jobs"),
        ("consume", "jobs", "--group", "out", "--from-beginning", "--json"),
        ("dead-letters", "list", "jobs"),
        ("dead-letters", "show", "jobs", "0:0"),
        ("dead-letters", "redrive", "jobs", "--dry-run"),
        ("preflight",),
        ("exporter", "--port", "0", "--host", "127.0.0.1"),
        ("dashboard", "--port", "0"),
        ("groups", "inspect", "workers", "--watch"),
        ("demo", "--plain"),
        ("broker", "--port", "0"),
    ],
    ids=lambda command: " ".join(map(ascii, command[:3])),
)
@pytest.mark.parametrize("where", ["full", "closed"])
def test_unwritable_stdout_is_one_error_line(broker, command, where):
    servers = ("--bootstrap-server", broker.bootstrap_servers)
    if command[0] not in ("completion", "--help", "--version", "broker"):
        command = (*command, *servers)
    if where == "full":
        with open("/dev/full", "w") as full:
            ended = run(*command, stdout=full)
    else:
        ended = run(*command, stdout=None, preexec_fn=lambda: os.close(1))

    assert 1 == ended.returncode, ended.stderr
    (line,) = ended.stderr.decode().splitlines()
    assert "standard output" in line


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize(
    "command",
    [
        ("groups", "inspect", "workers", "--watch", "0.1"),
        ("demo", "--plain"),
        ("groups", "list"),
    ],
    ids=lambda command: " ".join(map(ascii, command[:2])),
)
def test_closed_pipe_ends_command_without_message(broker, command):
    with subprocess.Popen(
        [*SHARECONS, *command, "--bootstrap-server", broker.bootstrap_servers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        if command[-1] != "list":
            process.stdout.readline()
        process.stdout.close()
        stderr = process.stderr.read()

    assert (141, b"") == (process.returncode, stderr)


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_pipe_closed_during_a_large_write_is_reported(broker, unbuffered):
    """Without a buffer, Python writes a part and ignores the rest."""
    topic = f"large{unbuffered}"
    broker.create_topic(topic)
    broker.produce(topic, ["x" * 500_000])
    servers = ("--bootstrap-server", broker.bootstrap_servers)
    with subprocess.Popen(
        [*SHARECONS, "peek", topic, "--json", *servers],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    ) as process:
        process.stdout.read(1)

    assert 141 == process.returncode


@pytest.mark.slow("starts a process")
def test_unwritable_stderr_keeps_exit_code():
    for stderr in ("/dev/full", None):
        options = {"preexec_fn": lambda: os.close(2)} if stderr is None else {}
        with open(stderr or os.devnull, "w") as file:
            ended = subprocess.run(
                [*SHARECONS, "groups", "list", *UNREACHABLE],
                stdout=subprocess.PIPE,
                stderr=file,
                timeout=60,
                check=False,
                **options,
            )

        assert (3, b"") == (ended.returncode, ended.stdout)


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize(
    "command", [(b"groups", b"describe", b"\xe9clair"), (b"peek", b"\xff\x1b[31m")]
)
def test_non_utf_8_argument_is_usage_error(command):
    ended = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"sharecons", *command],
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONUTF8": "1"},
    )

    assert (2, b"") == (ended.returncode, ended.stdout)
    (line,) = ended.stderr.decode().splitlines()
    assert "not valid UTF-8" in line
    assert set() == unsafe_characters(line)


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize("utf8_mode", ["0", "1"])
def test_utf_8_is_valid_in_the_locale_c(tmp_path, utf8_mode):
    """Without UTF-8 mode, Python decodes arguments as ASCII in this locale."""
    properties = tmp_path / "größe.properties"
    properties.write_text("bootstrap.servers=localhost:1\n")
    file = ["--command-config", os.fsencode(properties), "--timeout", "100ms"]
    ended = subprocess.run(
        [sys.executable, "-m", "sharecons", "groups", "describe", "éclair", *file],
        capture_output=True,
        timeout=60,
        check=False,
        env={
            **os.environ,
            "LC_ALL": "C",
            "PYTHONUTF8": utf8_mode,
            "SHARECONS_CLIENT_ID": "größe",
        },
    )

    assert (3, b"") == (ended.returncode, ended.stdout)
    assert b"localhost:1: " in ended.stderr


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize(
    "name", [b"SHARECONS_BOOTSTRAP_SERVERS", b"SHARECONS_CLIENT_ID"]
)
def test_non_utf_8_environment_variable_is_usage_error(name):
    ended = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"sharecons", b"groups", b"list"],
        capture_output=True,
        timeout=60,
        check=False,
        env={
            **os.environb,
            b"PYTHONUTF8": b"1",
            b"SHARECONS_BOOTSTRAP_SERVERS": b"localhost:1",
            name: b"\xe9clair:9092",
        },
    )

    assert (2, b"") == (ended.returncode, ended.stdout)
    (line,) = ended.stderr.decode().splitlines()
    assert name.decode() in line
