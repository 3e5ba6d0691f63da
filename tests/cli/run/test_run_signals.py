"""Signals while the module of the handler is imported, and signals that are ignored."""

import os
import shutil
import signal
import subprocess

import pytest

from sharecons.testing.kafka.ports import free_ports
from tests.cli.run.running import TIMEOUT, new_broker, running

SLOW = """
import os, threading
from pathlib import Path

with Path(os.environ["APP_LOG"]).open("a") as file:
    file.write(f"import {os.getpid()}\\n")
while not Path("go").exists():
    threading.Event().wait(0.02)

async def handle(record):
    pass
"""
"""A module whose import takes until the file `go` exists."""

NEW_PIDS = ("unshare", "--pid", "--fork", "--kill-child")
IGNORING_SIGINT = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")


@pytest.fixture
def broker():
    with new_broker() as broker:
        yield broker


def can_unshare():
    if shutil.which("unshare") is None:
        return False
    return (
        subprocess.run([*NEW_PIDS, "true"], stderr=subprocess.DEVNULL).returncode == 0
    )


@pytest.mark.slow("starts a process that imports the package")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_during_the_import_ends_the_process(broker, tmp_path, number):
    with running(broker, tmp_path, "app:handle", app=SLOW) as command:
        command.wait_for("import", 1)
        command.process.send_signal(number)

        assert 0 == command.process.wait(TIMEOUT)
        assert "" == command.stderr


@pytest.mark.slow("starts a process that imports the package")
def test_signal_during_the_import_ends_process_1(broker, tmp_path):
    if not can_unshare():
        pytest.skip("a process cannot have a PID namespace here")
    with running(broker, tmp_path, "app:handle", app=SLOW, prefix=NEW_PIDS) as command:
        command.wait_for("import", 1)
        assert [(1,)] == command.entries("import")
        parent = command.process.pid
        with open(f"/proc/{parent}/task/{parent}/children") as children:
            os.kill(int(children.read()), signal.SIGTERM)

        assert 0 == command.process.wait(TIMEOUT)


@pytest.mark.slow("starts processes that import the package")
@pytest.mark.parametrize("options", [(), ("--processes", "2")])
def test_sigint_that_is_ignored_at_the_start_stays_ignored(broker, tmp_path, options):
    start = {"prefix": IGNORING_SIGINT}
    with running(broker, tmp_path, "app:handle", *options, **start) as command:
        broker.produce("orders", [b"1"])
        command.wait_for("end", 1)
        command.process.send_signal(signal.SIGINT)
        broker.produce("orders", [b"2"])
        command.wait_for("end", 2)

        assert 0 == command.stop()
        assert "SIGINT" not in command.stderr


@pytest.mark.slow("starts a process that imports the package")
def test_health_port_responds_during_the_import(broker, tmp_path):
    options = ("--health-port", str(free_ports(1)[0]), "--health-host", "localhost")
    with running(broker, tmp_path, "app:handle", *options, app=SLOW) as command:
        command.wait_for("import", 1)
        url = f"http://127.0.0.1:{options[1]}"
        assert (200, "ok\n") == command.get("/livez", url=url)
        code, text = command.get("/readyz", url=url)
        assert (503, True) == (code, text.startswith("starting: "))
        assert 200 == command.get("/metrics", url=url)[0]

        (tmp_path / "go").touch()
        command.wait_until(lambda: (200, "ok\n") == command.get("/readyz"))
        assert 0 == command.stop()
