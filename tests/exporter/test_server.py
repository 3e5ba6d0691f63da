"""The exporter process: scrapes, unreachable brokers, SIGTERM."""

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
from tests.cli.run_cli import run_cli
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


def give_a_start(broker, group):
    where = ("--topic", "jobs", "--to-earliest", "--execute")
    servers = ("--bootstrap-server", broker.bootstrap_servers)
    assert 0 == run_cli("groups", "reset-offsets", group, *where, *servers).code


def is_up(shown):
    return shown.value("sharecons_exporter_up") == 1


def is_down(shown):
    return shown.value("sharecons_exporter_up") == 0 and shown.value(
        "sharecons_exporter_errors_total", what="cluster"
    )


@pytest.mark.slow
def test_exporter_runs_without_brokers_until_sigterm():
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
def test_port_in_use_is_reported_in_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with exporter("--port", port, "--bootstrap-server", "localhost:1") as process:
            _, said = process.communicate(timeout=PATIENCE)

    assert 1 == process.returncode
    (line,) = said.splitlines()
    assert f"cannot listen on 127.0.0.1:{port}: " in line


def test_invalid_interval_is_rejected():
    with exporter("--interval", "soon") as process:
        _, said = process.communicate(timeout=PATIENCE)

    assert 2 == process.returncode
    assert "'soon' is not a number of seconds" in said


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stopped", "hanging"])
def test_values_disappear_within_seconds_when_kafka_stops(how):
    with EmbeddedBroker(topics={"jobs": 1}) as broker:
        broker.produce("jobs", ["one"])
        servers = ("--bootstrap-server", broker.bootstrap_servers)
        give_a_start(broker, "workers")
        options = ("--port", "0", *servers, "--interval", "3600")
        with exporter(*options) as process:
            address = address_of(process)
            until(address, lambda shown: shown.values(f"{GROUP}lag_records") == [1])
            began = time.monotonic()
            if how == "stopped":
                broker.stop_broker(1)
                down = until(address, is_down)
                took = time.monotonic() - began
                broker.start_broker(1)
            else:
                with broker.faults.on("DescribeCluster", times=None).stall():
                    down = until(address, is_down)
                    took = time.monotonic() - began
            # The cluster is read again at once, not after the interval.
            back = until(address, is_up)

    assert took < 10
    assert [] == down.values(f"{GROUP}lag_records")
    assert [] == down.values(f"{GROUP}members")
    assert [1] == back.values(f"{GROUP}lag_records")


@pytest.mark.slow
def test_scrape_may_select_metrics():
    with EmbeddedBroker(topics={"jobs": 1}) as broker:
        servers = ("--bootstrap-server", broker.bootstrap_servers)
        give_a_start(broker, "workers")
        with exporter("--port", "0", *servers) as process:
            address = address_of(process)
            until(address, is_up)
            named = scraped(f"{address}?name[]={GROUP}lag_records")
            counters = scraped(f"{address}?name[]=sharecons_exporter_errors_total")

    assert {f"{GROUP}lag_records"} == named.names
    assert {"sharecons_exporter_errors_total"} == counters.names


@pytest.mark.slow
def test_an_ipv6_address_is_in_brackets():
    servers = ("--bootstrap-server", "localhost:1")
    with exporter("--host", "::1", "--port", "0", *servers) as process:
        line = process.stdout.readline()
        address = line.removeprefix("metrics: ").strip()
        shown = scraped(address)

    assert address.startswith("http://[::1]:")
    assert 0 == shown.value("sharecons_exporter_up")


@pytest.mark.slow
def test_an_ipv6_address_that_is_taken_is_in_brackets():
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as taken:
        port = str(taken.getsockname()[1])
        servers = ("--bootstrap-server", "localhost:1")
        with exporter("--host", "::1", "--port", port, *servers) as process:
            _, said = process.communicate(timeout=PATIENCE)

    assert f"cannot listen on [::1]:{port}: " in said
