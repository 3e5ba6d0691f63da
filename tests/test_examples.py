"""The programs in examples/, and the programs of the README that run alone."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from sharecons.testing import EmbeddedBroker
from sharecons.testing.kafka.ports import free_ports
from sharecons.testing.pytest_plugin import SETTINGS
from tests.kafka_plugin import Kafka
from tests.waiting import until_true

ROOT = Path(__file__).parent.parent
TOPIC = "orders"
slow = pytest.mark.slow("starts a process")

JOBS = [b"job %d" % number for number in range(30)]


@pytest.fixture(scope="session")
def orders(any_kafka: Kafka) -> Kafka:
    kafka = any_kafka
    kafka.admin.create_topic(partitions=3, name=TOPIC)
    kafka.admin.set_group_config("billing", {"share.auto.offset.reset": "earliest"})
    kafka.admin.produce(TOPIC, JOBS)
    return kafka


def run_until(
    program: Path | list[str], kafka: Kafka, expected: str, times: int
) -> str:
    """Run a program until it has printed `expected` that often; then send SIGINT."""
    environment = {**os.environ, "BOOTSTRAP_SERVERS": kafka.bootstrap_servers}
    environment["PYTHONUNBUFFERED"] = "1"
    arguments = program if isinstance(program, list) else [str(program)]
    # A shell's background process and its children ignore SIGINT by default.
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    printed = b""
    end = time.monotonic() + 30
    try:
        while printed.decode().count(expected) < times and time.monotonic() < end:
            if select.select([process.stdout], [], [], 0.1)[0]:
                printed += os.read(process.stdout.fileno(), 1 << 16)
        process.send_signal(signal.SIGINT)
        printed += process.communicate(timeout=20)[0]
    finally:
        process.kill()
        process.wait()
    return printed.decode()


@slow
def test_quickstart_prints_every_job(orders: Kafka) -> None:
    printed = run_until(ROOT / "examples" / "quickstart.py", orders, "job", len(JOBS))

    assert {job.decode() for job in JOBS} <= set(re.findall(r"job \d+", printed))
    assert printed.endswith("closed\n")


@slow
def test_explicit_reports_confirmed_acknowledgements(orders: Kafka) -> None:
    printed = run_until(ROOT / "examples" / "explicit.py", orders, "release", 3)

    assert "accept confirmed" in printed
    assert "failed" not in printed


@pytest.mark.slow("starts Spark and its workers", seconds=100)
@pytest.mark.timeout(240)
def test_spark_stream_shows_every_job(orders: Kafka) -> None:
    pytest.importorskip("pyspark", reason="needs sharecons[spark]")
    environment = {**os.environ, "BOOTSTRAP_SERVERS": orders.bootstrap_servers}
    ended = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "spark_stream.py")],
        capture_output=True,
        text=True,
        env=environment,
        timeout=180,
    )

    assert ended.returncode == 0, ended.stderr
    assert {job.decode() for job in JOBS} <= set(re.findall(r"job \d+", ended.stdout))


@slow
def test_taskiq_app_retries_and_delivers_every_hook(orders: Kafka) -> None:
    pytest.importorskip("taskiq", reason="needs sharecons[taskiq]")
    orders.admin.create_topic(name="hooks")
    program = ROOT / "examples" / "taskiq_app.py"
    urls = [f"https://example.org/{number}" for number in range(5)]
    sent = subprocess.run(
        [sys.executable, str(program), *urls],
        capture_output=True,
        text=True,
        env={**os.environ, "BOOTSTRAP_SERVERS": orders.bootstrap_servers},
        timeout=30,
    )
    assert [f"sent {url}" for url in urls] == sent.stdout.splitlines(), sent.stderr

    worker = ["-m", "taskiq", "worker", "--app-dir", str(program.parent)]
    options = ["taskiq_app:broker", "--workers", "1"]
    printed = run_until([*worker, *options], orders, "delivered", len(urls))

    assert sorted(re.findall(r"delivered (\S+)", printed)) == urls


@slow
def test_fastapi_worker_charges_what_is_posted_and_closes() -> None:
    pytest.importorskip("fastapi")
    with EmbeddedBroker(settings=SETTINGS, topics={TOPIC: 2}) as broker:
        with serving(broker) as (process, url):
            wait_for_health(url, 200)
            posted = [httpx.post(f"{url}/orders/tea-{n}") for n in range(20)]
            broker.wait_until_settled_sync("billing")
            process.send_signal(signal.SIGTERM)
            printed = process.communicate(timeout=20)[0].decode()

        assert [response.status_code for response in posted] == [202] * 20
        assert len({tuple(response.json().items()) for response in posted}) == 20
        charged = re.findall(r"charged (\S+)", printed)
        assert sorted(charged) == sorted(f"tea-{number}" for number in range(20))
        assert "closed\n" in printed
        assert broker.group("billing").members == ()


@slow
def test_fastapi_worker_logs_an_order_that_fails_and_stops_within_its_grace() -> None:
    pytest.importorskip("fastapi")
    with EmbeddedBroker(settings=SETTINGS, topics={TOPIC: 1}) as broker:
        broker.produce(TOPIC, [b"tea", b"\xff"])
        with serving(broker) as (process, url):
            wait_for_health(url, 200)
            until_true(lambda: broker.group("billing").partitions[0].start_offset)
            printed = read_until(process, "attempt failed")
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            printed += process.communicate(timeout=20)[0].decode()
            seconds = time.monotonic() - began

        assert seconds < 3.0
        assert "closed\n" in printed
        assert broker.group("billing").partitions[0].start_offset == 1
    (line,) = re.findall(r".* attempt failed .*", printed)
    assert " WARNING sharecons.worker.runner: attempt failed " in line
    assert " topic=orders partition=0 offset=1 " in line
    assert " attempt=1 " in line
    assert ' error="UnicodeDecodeError: ' in line
    assert re.search(r"fastapi_worker\.py:\d+ in charge'", line)
    assert "then='attempt 2 in " in line


def read_until(process: subprocess.Popen[bytes], text: str) -> str:
    """Read lines of a program's output up to a line that contains a text."""
    assert process.stdout is not None
    printed = ""
    while text not in printed:
        line = process.stdout.readline().decode()
        assert line, f"the program ended without {text!r}: {printed}"
        printed += line
    return printed


@slow
def test_fastapi_worker_that_fails_ends_the_app() -> None:
    pytest.importorskip("fastapi")
    with EmbeddedBroker(settings=SETTINGS, topics={TOPIC: 1}) as broker:
        denied = broker.faults.on("ShareGroupHeartbeat", times=None)
        with (
            denied.refuse("GROUP_AUTHORIZATION_FAILED"),
            serving(broker) as (process, _),
        ):
            printed = process.communicate(timeout=20)[0].decode()

    assert "ERROR fastapi_worker: the worker has failed; the app ends" in printed
    assert "AuthorizationError" in printed
    assert "Application shutdown complete" in printed
    assert "closed\n" in printed


@slow
def test_fastapi_worker_is_unhealthy_while_kafka_is_down() -> None:
    pytest.importorskip("fastapi")
    with (
        EmbeddedBroker(settings=SETTINGS, topics={TOPIC: 2}) as broker,
        serving(broker) as (_, url),
    ):
        wait_for_health(url, 200)
        broker.stop_broker(1)
        wait_for_health(url, 503)
        broker.start_broker(1)
        wait_for_health(url, 200)


@contextmanager
def serving(
    broker: EmbeddedBroker,
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run the FastAPI example under uvicorn; yield the process and its address."""
    (port,) = free_ports(1)
    program = ROOT / "examples" / "fastapi_worker.py"
    app = ["--app-dir", str(program.parent), f"{program.stem}:app"]
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "uvicorn", *app, "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "BOOTSTRAP_SERVERS": broker.bootstrap_servers},
    )
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate()


def wait_for_health(url: str, status: int) -> None:
    """Wait until the program's health endpoint responds with the status."""

    def has_status() -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"{url}/health").status_code == status
        return False

    until_true(has_status, what=f"status {status} of {url}/health")


def program_of_the_readme(
    bootstrap_servers: str, number: int = 0, page: str = "README.md"
) -> str:
    text = (ROOT / page).read_text()
    block = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[number]
    return block.replace("localhost:9092", bootstrap_servers)


@slow
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_readme_program_runs(
    orders: Kafka, tmp_path: Path, number: int, page: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(program_of_the_readme(orders.bootstrap_servers, number, page))
    job = f"job {number} of {page}"
    orders.admin.produce(TOPIC, [job.encode()])

    assert job in run_until(program, orders, job, 1)


@slow
@pytest.mark.parametrize("name", ["quickstart.py", "explicit.py", "README.md"])
def test_sigterm_leaves_the_group(name: str, tmp_path: Path) -> None:
    with EmbeddedBroker(settings=SETTINGS, topics={TOPIC: 1}) as broker:
        group = "explicit-billing" if name == "explicit.py" else "billing"
        broker.set_group_config(group, {"share.auto.offset.reset": "earliest"})
        broker.produce(TOPIC, JOBS)
        program = ROOT / "examples" / name
        if name == "README.md":
            program = tmp_path / "program.py"
            program.write_text(program_of_the_readme(broker.bootstrap_servers))
        process = subprocess.Popen(
            [sys.executable, "-u", str(program)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "BOOTSTRAP_SERVERS": broker.bootstrap_servers},
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            assert broker.group(group).members
            process.terminate()
            process.communicate(timeout=20)
        finally:
            process.kill()
            process.wait()

        assert broker.group(group).members == ()


def test_readme_code_compiles() -> None:
    readme = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)

    assert len(blocks) == 2
    for number, block in enumerate(blocks):
        compile(block, f"README.md, block {number}", "exec")


def test_every_example_has_a_test() -> None:
    files = Path(__file__).parent.glob("test_*examples.py")
    here = "".join(file.read_text() for file in files)
    examples = list((ROOT / "examples").glob("*.py"))

    named = [
        path
        for path in examples
        if f'"{path.name}"' in here or f'"{path.stem}:' in here
    ]
    assert named == examples
