"""`sharecons dashboard` and `sharecons demo --open` as processes."""

import signal
import socket
from types import SimpleNamespace

import httpx
import pytest

from sharecons.testing import EmbeddedBroker
from tests.cli.processes import end, start
from tests.cli.run_cli import run_cli

TIMEOUT = 20.0


@pytest.fixture
def broker():
    with EmbeddedBroker(topics={"orders": 2}) as broker:
        yield broker


def address_of(process):
    for line in process.stdout:
        if line.startswith(b"dashboard: http://"):
            return line.split()[1].decode()
    raise AssertionError(process.stderr.read().decode())


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_dashboard_runs_until_a_signal_even_with_open_pages(broker, number):
    with start(broker, "dashboard", "--port", "0", "--interval", "0.1") as process:
        url = address_of(process)
        page = httpx.get(url, timeout=TIMEOUT)
        with httpx.stream("GET", f"{url}events", timeout=TIMEOUT) as events:
            lines = events.iter_lines()
            versions = [line for line in (next(lines) for _ in range(6)) if line]
            process.send_signal(number)
            rest = list(lines)
        ended = end(process)

    assert "0 groups, the worst first" in page.text
    numbers = [int(line.removeprefix("data: ")) for line in versions]
    assert [numbers[0], numbers[0] + 1, numbers[0] + 2] == numbers
    assert len(rest) < 10
    assert (0, b"", []) == ended


@pytest.mark.slow("starts a process")
def test_broker_that_is_away_is_named_on_the_page_and_on_stderr():
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    away = SimpleNamespace(bootstrap_servers=f"127.0.0.1:{port}")
    with start(away, "dashboard", "--port", "0", "--timeout", "1s") as process:
        url = address_of(process)
        page = httpx.get(url, timeout=TIMEOUT)
        group = httpx.get(f"{url}group?id=billing", timeout=TIMEOUT)
        process.send_signal(signal.SIGTERM)
        code, _, lines = end(process)

    assert "No broker responds" in page.text
    assert f"127.0.0.1:{port}" in page.text
    assert "This group has not been read" in group.text
    assert "No such group" not in group.text
    assert 0 == code
    assert f"127.0.0.1:{port}" in lines[0]


@pytest.mark.slow("starts a process")
def test_port_that_is_in_use_is_an_error_line(broker):
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        servers = ("--bootstrap-server", broker.bootstrap_servers)
        result = run_cli("dashboard", "--port", port, *servers)

    assert 1 == result.code
    text = f"sharecons dashboard: cannot listen on 127.0.0.1:{port}: Address already in"
    assert result.err.startswith(text)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--host", "0.0.0.0"), "--host 0.0.0.0: other machines need a token: set SHA"),
        (("--token-file", "missing"), "cannot read missing: No such file"),
        (("--token-file", "empty"), "empty: the token is empty"),
        (("--read-token-file", "empty"), "empty: the token is empty"),
        (("--passwords-file", "empty"), "empty: no user has a password"),
        (("--passwords-file", "wrong"), "wrong, line 2 is not NAME:PASSWORD"),
        (("--worker", "10.0.0.7:9931"), "a worker's address is like http://10.0.0.7"),
        (("--interval", "0"), "--interval"),
    ],
)
def test_wrong_option_is_an_error_line(tmp_path, monkeypatch, options, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "wrong").write_text("ada:secret-1\nbob\n")

    servers = ("--bootstrap-server", "localhost:9")
    result = run_cli("dashboard", "--port", "0", *servers, *options)

    assert 2 == result.code
    assert text in result.lines[-1]
    assert "secret-1" not in result.err


@pytest.mark.slow("starts a process")
def test_secrets_come_from_files_and_the_environment(broker, tmp_path, monkeypatch):
    monkeypatch.setenv("SHARECONS_DASHBOARD_READ_TOKEN", "for-reading")
    (tmp_path / "token").write_text("for-all\n")
    (tmp_path / "users").write_text("ada:s:e\n\n")
    files = ("--token-file", tmp_path / "token", "--passwords-file", tmp_path / "users")
    with start(broker, "dashboard", "--port", "0", *files) as process:
        url = address_of(process)
        codes = [
            httpx.get(url, auth=auth, timeout=TIMEOUT).status_code
            for auth in (None, ("ada", "s:e"), ("ada", "s"), ("x", "for-reading"))
        ]
        process.terminate()
        ended = end(process)

    assert [401, 200, 401, 200] == codes
    assert (0, b"", []) == ended


@pytest.mark.slow("the whole demo, in processes")
def test_demo_is_shown_until_ctrl_c(broker):
    options = ("--plain", "--open", "--jobs", "20", "--consumers", "2")
    with start(broker, "demo", *options) as process:
        url = address_of(process)
        for line in process.stdout:
            if b"until Ctrl-C" in line:
                break
        page = httpx.get(url, timeout=TIMEOUT)
        process.send_signal(signal.SIGINT)
        code, _, errors = end(process)

    assert "sharecons-demo-" in page.text
    assert (0, []) == (code, errors)
