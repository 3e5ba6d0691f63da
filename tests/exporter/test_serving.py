"""The exporter as a process: scraped, left alone by brokers, and told to stop."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.request import urlopen

import pytest

from sharecons.testing import EmbeddedBroker
from tests.exporter.scraped import GROUP, Scrape

PATIENCE = 20.0
COMMAND = (sys.executable, "-m", "sharecons", "exporter", "--host", "127.0.0.1")


@contextmanager
def exporter(*options):
    process = subprocess.Popen(
        [*COMMAND, "--interval", "0.1", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def address_of(process):
    line = process.stdout.readline()
    assert line.startswith("metrics: http://127.0.0.1:"), process.stderr.read()
    return line.removeprefix("metrics: ").strip()


def scraped(address):
    with urlopen(address, timeout=PATIENCE) as answer:
        return Scrape(answer.read().decode())


def until(address, is_so):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        shown = scraped(address)
        if is_so(shown):
            return shown
        time.sleep(0.05)
    raise AssertionError(shown.text)


def is_up(shown):
    return shown.value("sharecons_exporter_up") == 1


def is_down(shown):
    return shown.value("sharecons_exporter_up") == 0 and shown.value(
        "sharecons_exporter_errors_total", what="cluster"
    )


@pytest.mark.slow
def test_it_goes_on_while_brokers_are_away_and_stops_when_told():
    with EmbeddedBroker(topics={"jobs": 1}) as broker:
        servers = ("--bootstrap-server", broker.bootstrap_servers, "--timeout", "500")
        with exporter("--port", "0", *servers) as process:
            address = address_of(process)
            until(address, is_up)
            broker.stop_broker(1)
            down = until(address, is_down)
            broker.start_broker(1)
            until(address, is_up)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=PATIENCE)

    assert 0 == process.returncode
    assert time.monotonic() - began < PATIENCE / 2
    assert [] == down.values(f"{GROUP}members")
    assert "everything can be read again" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_port_that_is_taken_is_said_in_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with exporter("--port", port, "--bootstrap-server", "localhost:1") as process:
            _, said = process.communicate(timeout=PATIENCE)

    assert 1 == process.returncode
    (line,) = said.splitlines()
    assert f"cannot listen on 127.0.0.1:{port}: " in line


def test_an_interval_that_is_no_time_is_refused():
    with exporter("--interval", "soon") as process:
        _, said = process.communicate(timeout=PATIENCE)

    assert 2 == process.returncode
    assert "'soon' is no number of seconds" in said
