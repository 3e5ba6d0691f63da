"""`sharecons run` when a handler ends the worker: error lines and exit codes."""

import socket
import time
from types import SimpleNamespace

import pytest

from tests.cli.run.running import TIMEOUT, new_broker, running

pytestmark = pytest.mark.slow("starts a process")

STOP_ON_ERROR = """
import os

from sharecons import ShareConsumer, ShareWorker
from sharecons.errors import ConfigurationError


async def handle(record):
    raise {error}


def make_worker():
    return ShareWorker("orders",
handle,
group_id="billing",
bootstrap_servers=os.environ["APP_SERVERS"],
auto_offset_reset="earliest",
stop_on_error=True,)
"""


@pytest.fixture
def broker():
    with new_broker(records=1) as broker:
        yield broker


@pytest.mark.parametrize("port", [(), ("--health-port", "0")])
@pytest.mark.parametrize(
    "error",
    ["OSError(28, 'disk full')", "TimeoutError('slow')", "ConfigurationError('id')"],
)
def test_error_of_a_handler_that_stops_the_worker_is_its_own(
    broker, tmp_path, error, port
):
    app = STOP_ON_ERROR.format(error=error)
    with running(broker, tmp_path, "app:make_worker", *port, app=app) as command:
        code = command.process.wait(TIMEOUT)

        assert 1 == code
        (failed,) = command.events("worker failed")
        assert error.partition("(")[0] in failed["exception"]
        assert "--health-port" not in command.stderr


def test_used_health_port_is_a_usage_error(broker, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        options = ("--health-port", port)
        with running(broker, tmp_path, "app:handle", *options) as command:
            code = command.process.wait(TIMEOUT)

            assert 2 == code
            text = f"sharecons run: --health-port: cannot listen on 127.0.0.1:{port}: "
            assert text in command.stderr


def test_signal_while_no_broker_is_reachable_ends_within_a_second(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    nowhere = SimpleNamespace(bootstrap_servers=f"127.0.0.1:{port}")
    with running(nowhere, tmp_path, "app:handle") as command:
        command.wait_until(lambda: command.events("no broker reached yet, retrying"))
        began = time.monotonic()
        code = command.stop()

        assert 0 == code
        assert time.monotonic() - began < 2.0  # with the end of the interpreter


SLOW_NAMES = """
import os
import socket
import threading
from pathlib import Path


def getaddrinfo(*arguments, **options):
    Path(os.environ["APP_LOG"]).write_text("begin\\n")
    threading.Event().wait()


socket.getaddrinfo = getaddrinfo


async def handle(record):
    pass
"""


def test_signal_while_a_host_name_is_looked_up_is_a_clean_stop(tmp_path):
    nowhere = SimpleNamespace(bootstrap_servers="kafka.example:9092")
    with running(nowhere, tmp_path, "app:handle", app=SLOW_NAMES) as command:
        command.wait_for("begin", 1)
        began = time.monotonic()
        code = command.stop()

        assert 0 == code
        assert time.monotonic() - began < 3.0


@pytest.mark.parametrize(
    "api", ["ApiVersions", "FindCoordinator", "ShareGroupHeartbeat"]
)
def test_signal_while_a_broker_does_not_respond_is_a_clean_stop(broker, tmp_path, api):
    with broker.faults.on(api, times=None).stall() as fault:
        with running(broker, tmp_path, "app:handle") as command:
            command.wait_until(lambda: fault.hits)
            began = time.monotonic()
            code = command.stop()

            assert 0 == code
            assert time.monotonic() - began < 2.0


RAISES = """
import os

from pathlib import Path


async def handle(record):
    with Path(os.environ["APP_LOG"]).open("a") as log:
        log.write(f"begin {{os.getpid()}}\\n")
    {raises}


def handle_in_thread(record):
    {raises}
"""


@pytest.mark.parametrize("handler", ["handle", "handle_in_thread"])
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("SystemExit(0)", 0),
        ("SystemExit(7)", 7),
        ("SystemExit('no disk')", 1),
        ("GeneratorExit()", 1),
        ("BaseExceptionGroup('tasks', [GeneratorExit()])", 1),
    ],
)
def test_exit_of_a_handler_is_logged_with_its_traceback(
    broker, tmp_path, handler, error, expected
):
    app = RAISES.format(raises=f"raise {error}")
    with running(broker, tmp_path, f"app:{handler}", app=app) as command:
        code = command.process.wait(TIMEOUT)

        assert expected == code
        (failed,) = command.events("worker failed")
        assert "error" == failed["level"]
        assert f"raise {error}" in failed["exception"]
        assert 1 == len(command.events("worker ended"))
        assert all(line.startswith("{") for line in command.stderr.splitlines())


@pytest.mark.parametrize("error", ["SystemExit(0)", "SystemExit(2)", "GeneratorExit()"])
def test_process_that_a_handler_has_ended_is_started_again(broker, tmp_path, error):
    app = RAISES.format(raises=f"raise {error}")
    options = ("--processes", "2")
    with running(broker, tmp_path, "app:handle", *options, app=app) as command:
        command.wait_until(lambda: len({*command.entries("begin")}) >= 3)


def test_module_that_exits_while_it_is_imported_is_a_usage_error(broker, tmp_path):
    app = "raise SystemExit(0)"
    with running(broker, tmp_path, "app:handle", app=app) as command:
        assert 2 == command.process.wait(TIMEOUT)
        assert "module 'app' cannot be imported: SystemExit: 0" in command.stderr
