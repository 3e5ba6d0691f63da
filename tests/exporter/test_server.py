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

from sharecons.cli import main
from sharecons.testing import EmbeddedBroker
from tests.cli.run_cli import run_cli
from tests.exporter.ledgers import BACKLOG, write_ledger
from tests.exporter.scraped import GROUP, Scrape
from tests.waiting import until_true

TIMEOUT = 20.0
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
    with urlopen(address, timeout=TIMEOUT) as response:
        return Scrape(response.read().decode())


def scrape_until(address, condition):
    """Scrape until a condition is true for the samples, and return them."""

    def scrape_if_true():
        shown = scraped(address)
        return shown if condition(shown) else None

    return until_true(scrape_if_true, TIMEOUT, pause=0.05)


def set_start_offset(broker, group):
    where = ("--topic", "jobs", "--to-earliest", "--execute")
    servers = ("--bootstrap-server", broker.bootstrap_servers)
    assert 0 == run_cli("groups", "reset-offsets", group, *where, *servers).code


def is_up(shown):
    return shown.value("sharecons_exporter_up") == 1


def is_collected(shown):
    return is_up(shown) and shown.value("sharecons_exporter_collections_total") > 0


def is_collected_after(down, shown):
    name = "sharecons_exporter_collections_total"
    return is_up(shown) and shown.value(name) > down.value(name)


def is_down(shown):
    return shown.value("sharecons_exporter_up") == 0 and shown.value(
        "sharecons_exporter_errors_total", what="cluster"
    )


@pytest.mark.slow("starts a process")
def test_exporter_runs_without_brokers_until_sigterm():
    with EmbeddedBroker(topics={"jobs": 1}) as broker:
        servers = ("--bootstrap-server", broker.bootstrap_servers, "--timeout", "500")
        with exporter("--port", "0", *servers) as process:
            address = address_of(process)
            scrape_until(address, is_up)
            broker.stop_broker(1)
            down = scrape_until(address, is_down)
            broker.start_broker(1)
            scrape_until(address, lambda shown: is_collected_after(down, shown))
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            _, stderr = process.communicate(timeout=TIMEOUT)

    assert 0 == process.returncode
    assert time.monotonic() - began < TIMEOUT / 2
    assert [] == down.values(f"{GROUP}members")
    assert "everything can be read again" in stderr
    assert "Traceback" not in stderr


@pytest.mark.slow("starts a process")
def test_backlog_of_a_ledger_is_served(tmp_path):
    ledger = str(tmp_path / "ledger")
    with EmbeddedBroker(topics={"jobs": 1}) as broker:
        servers = ("--bootstrap-server", broker.bootstrap_servers)
        with exporter("--port", "0", "--ledger", ledger, *servers) as process:
            address = address_of(process)
            missing = scrape_until(
                address,
                lambda shown: shown.value(
                    "sharecons_exporter_errors_total", what="ledgers"
                ),
            )
            write_ledger(ledger, "billing", "jobs", acquired=12, finished=5)
            shown = scrape_until(address, lambda shown: shown.values(BACKLOG))
            process.send_signal(signal.SIGTERM)
            _, stderr = process.communicate(timeout=TIMEOUT)

    assert missing.values(BACKLOG) == []
    assert shown.value(BACKLOG, group="billing", topic="jobs", partition="0") == 7
    assert f"there is no ledger in {ledger}" in stderr
    assert "everything can be read again" in stderr


@pytest.mark.slow("starts a process")
def test_port_in_use_is_reported_in_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with exporter("--port", port, "--bootstrap-server", "localhost:1") as process:
            _, stderr = process.communicate(timeout=TIMEOUT)

    assert 1 == process.returncode
    (line,) = stderr.splitlines()
    assert f"cannot listen on 127.0.0.1:{port}: " in line


def test_invalid_interval_is_rejected():
    with exporter("--interval", "soon") as process:
        _, stderr = process.communicate(timeout=TIMEOUT)

    assert 2 == process.returncode
    assert "'soon' is not a number of seconds" in stderr


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize("how", ["stopped", "hanging"])
def test_values_disappear_within_seconds_when_kafka_stops(how):
    with EmbeddedBroker(topics={"jobs": 1}) as broker:
        broker.produce("jobs", ["one"])
        servers = ("--bootstrap-server", broker.bootstrap_servers)
        set_start_offset(broker, "workers")
        options = ("--port", "0", *servers, "--interval", "3600")
        with exporter(*options) as process:
            address = address_of(process)
            scrape_until(
                address, lambda shown: shown.values(f"{GROUP}lag_records") == [1]
            )
            began = time.monotonic()
            if how == "stopped":
                broker.stop_broker(1)
                down = scrape_until(address, is_down)
                took = time.monotonic() - began
                broker.start_broker(1)
            else:
                with broker.faults.on("DescribeCluster", times=None).stall():
                    down = scrape_until(address, is_down)
                    took = time.monotonic() - began
            # The cluster is read again immediately, not after the interval.
            back = scrape_until(
                address, lambda shown: shown.values(f"{GROUP}lag_records")
            )

    assert took < 10
    assert [] == down.values(f"{GROUP}lag_records")
    assert [] == down.values(f"{GROUP}members")
    assert [1] == back.values(f"{GROUP}lag_records")


@pytest.mark.slow("starts a process")
def test_exporter_is_up_before_its_first_collection_has_ended():
    with EmbeddedBroker(topics={"jobs": 1}) as broker:
        servers = ("--bootstrap-server", broker.bootstrap_servers)
        with broker.faults.on("ListGroups", times=None).stall():
            with exporter("--port", "0", *servers) as process:
                shown = scrape_until(address_of(process), is_up)

    assert 0 == shown.value("sharecons_exporter_collections_total")


@pytest.mark.slow("starts a process")
def test_scrape_with_names_returns_only_these_metrics():
    with EmbeddedBroker(topics={"jobs": 1}) as broker:
        servers = ("--bootstrap-server", broker.bootstrap_servers)
        set_start_offset(broker, "workers")
        with exporter("--port", "0", *servers) as process:
            address = address_of(process)
            scrape_until(address, is_collected)
            named = scraped(f"{address}?name[]={GROUP}lag_records")
            counters = scraped(f"{address}?name[]=sharecons_exporter_errors_total")

    assert {f"{GROUP}lag_records"} == named.names
    assert {"sharecons_exporter_errors_total"} == counters.names


@pytest.mark.slow("starts a process")
def test_ipv6_address_is_printed_in_brackets():
    servers = ("--bootstrap-server", "localhost:1")
    with exporter("--host", "::1", "--port", "0", *servers) as process:
        line = process.stdout.readline()
        address = line.removeprefix("metrics: ").strip()
        shown = scraped(address)

    assert address.startswith("http://[::1]:")
    assert 0 == shown.value("sharecons_exporter_up")


@pytest.mark.slow("starts a process")
def test_used_port_of_ipv6_address_is_reported_with_brackets():
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as taken:
        port = str(taken.getsockname()[1])
        servers = ("--bootstrap-server", "localhost:1")
        with exporter("--host", "::1", "--port", port, *servers) as process:
            _, stderr = process.communicate(timeout=TIMEOUT)

    assert f"cannot listen on [::1]:{port}: " in stderr


@pytest.mark.slow("the HTTP server ends within 0.5 s")
def test_error_while_collecting_is_not_an_error_of_the_port(monkeypatch, capsys):
    async def fail(*_):
        raise OSError(28, "disk full")

    monkeypatch.setattr("sharecons.group_state.polling.collect_repeatedly", fail)
    with pytest.raises(ExceptionGroup) as caught:
        main(["exporter", "--port", "0", "--bootstrap-server", "localhost:1"])

    assert caught.group_contains(OSError, match="disk full")
    assert "cannot listen" not in capsys.readouterr().err
