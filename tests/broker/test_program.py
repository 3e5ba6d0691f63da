"""`python -m sharecons broker` as a subprocess."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from sharecons.cli import main
from sharecons.testing import EmbeddedBroker

COMMAND = [sys.executable, "-m", "sharecons"]
CPU = {"user": 0.5}
"""Seconds of CPU for the help on a slow machine; normally 0.04."""


def start(*arguments):
    # In a background shell, Ctrl-C is ignored by all child processes.
    return subprocess.Popen(
        [*COMMAND, "broker", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_command_serves_until_a_signal(ending):
    with start("--port", "0", "--brokers", "2", "--topic", "orders:3") as process:
        try:
            first = process.stdout.readline()
            assert first.startswith("bootstrap servers: ")
            ports = [int(port) for port in re.findall(r":(\d+)", first)]
            for port in ports:
                socket.create_connection(("127.0.0.1", port)).close()
            process.send_signal(ending)
            _, errors = process.communicate(timeout=10)
        finally:
            process.kill()

    assert 2 == len(ports)
    assert (0, "") == (process.returncode, errors)


def test_used_port_is_a_one_line_error(capsys):
    with EmbeddedBroker() as other:
        port = other.cluster.brokers[1].port
        code = main(["broker", "--port", str(port)])

    assert 1 == code
    assert f"sharecons broker: 127.0.0.1:{port}: Address already in use\n" == (
        capsys.readouterr().err
    )


def test_invalid_topic_is_a_one_line_error(capsys):
    assert 1 == main(["broker", "--port", "0", "--topic", "a/b"])
    assert re.fullmatch("sharecons broker: .*'a/b'.*\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], ["broker", "--topic", "a:x"], ["broker", "--set", "a"]],
)
def test_usage_error_exits_with_2(arguments, capsys):
    assert 2 == main(arguments)
    assert re.fullmatch(
        "sharecons.*: .*; see sharecons.* --help\n", capsys.readouterr().err
    )


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize("arguments", [["--help"], ["broker", "--help"], ["--version"]])
def test_help_imports_neither_client_nor_broker(arguments):
    program = (
        "import sys\n"
        "from sharecons.cli import main\n"
        "try:\n"
        f"    main({arguments!r})\n"
        "except SystemExit as ended:\n"
        "    assert ended.code == 0\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'kio', 'anyio', 'asyncio', 'structlog'}, loaded\n"
    )
    began = time.process_time(), os.times().children_user
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)

    assert os.times().children_user - began[1] < CPU["user"]
