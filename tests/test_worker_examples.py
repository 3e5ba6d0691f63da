"""The programs in examples/ that run a `ShareWorker`."""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sharecons.copies.dead_letter_headers import read_origin
from sharecons.testing import EmbeddedBroker
from sharecons.testing.kafka.ports import free_ports
from sharecons.testing.pytest_plugin import SETTINGS
from tests.waiting import until_true

pytestmark = pytest.mark.slow("starts processes")

EXAMPLES = Path(__file__).parent.parent / "examples"
ROWS = "SELECT topic, partition, source_offset, value FROM orders ORDER BY 1, 2, 3"


class Program:
    """An example that runs in a process, and what it has printed."""

    def __init__(self, broker: EmbeddedBroker, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-u", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **os.environ,
                "BOOTSTRAP_SERVERS": broker.bootstrap_servers,
                "PYTHONPATH": os.pathsep.join(
                    [str(EXAMPLES), os.environ.get("PYTHONPATH", "")]
                ),
            },
        )
        self.printed = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            for line in stdout:
                self.printed += line

    def until(self, condition: Callable[[], object], seconds: float = 40) -> None:
        try:
            until_true(condition, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; printed: {self.printed}") from None

    def wait(self) -> int:
        """Wait until the program ends; return its exit code."""
        code = self._process.wait(30)
        self._reader.join()
        return code

    def stop(self) -> None:
        """Send SIGTERM; the program must end by itself."""
        self._process.terminate()
        assert self.wait() == 0, self.printed
        assert self.printed.endswith("closed\n")

    def kill(self) -> None:
        self._process.kill()
        self.wait()


@contextmanager
def running(broker: EmbeddedBroker, *arguments: str) -> Iterator[Program]:
    program = Program(broker, *arguments)
    try:
        yield program
    finally:
        program.kill()


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings=SETTINGS) as broker:
        yield broker


def settled(broker: EmbeddedBroker, group: str, topic: str, count: int) -> bool:
    """Return whether `count` records of one partition are settled."""
    try:
        partitions = broker.group(group).partitions
    except LookupError:
        return False
    return [count] == [each.start_offset for each in partitions if each.topic == topic]


# The web-hook sender.


class Hooks(ThreadingHTTPServer):
    """A server that returns for each body its planned statuses, and then 200."""

    def __init__(self, planned: dict[bytes, list[int]]) -> None:
        super().__init__(("127.0.0.1", 0), HookHandler)
        self.planned = planned
        self.received: list[tuple[bytes, str]] = []
        self.url = f"http://127.0.0.1:{self.server_port}/hook"


class HookHandler(BaseHTTPRequestHandler):
    server: Hooks

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((body, self.headers["Idempotency-Key"]))
        statuses = self.server.planned[body]
        status = statuses.pop(0) if statuses else 200
        if status == 0:  # no response
            self.close_connection = True
            return
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def test_webhook_sender_retries_and_gives_up(broker: EmbeddedBroker) -> None:
    planned = {
        b"accepted": [],
        b"unavailable": [503, 500],
        b"no response": [0],
        b"too many": [429],
        b"unknown": [404],
        b"always broken": [500] * 20,
    }
    bodies = list(planned)
    for topic in ("webhooks", "webhooks.retry", "webhooks.dead"):
        broker.create_topic(topic, partitions=1)
    broker.produce("webhooks", bodies)
    program = str(EXAMPLES / "webhook_sender.py")

    with Hooks(planned) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            with running(
                broker, program, server.url, "--first-delay", "0.02"
            ) as sender:
                sender.until(lambda: settled(broker, "webhook-senders", "webhooks", 6))
                sender.stop()
        finally:
            server.shutdown()

    assert {
        b"accepted": 1,
        b"unavailable": 3,
        b"no response": 2,
        b"too many": 2,
        b"unknown": 1,
        b"always broken": 8,
    } == Counter(body for body, _ in server.received)
    assert {(body, f"webhooks-0-{n}") for n, body in enumerate(bodies)} == {
        *server.received
    }
    origins = {
        letter.value: read_origin(letter.headers)
        for letter in broker.records("webhooks.dead")
    }
    assert {b"unknown", b"always broken"} == {*origins}
    unknown, broken = origins[b"unknown"], origins[b"always broken"]
    assert unknown is not None
    assert broken is not None
    assert "status 404: " == unknown.reason
    assert "httpx.HTTPStatusError" == broken.exception
    assert 8 == broken.attempts


# The batch writer.


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database."""
    if request.param == "sqlite":
        yield str(tmp_path / "orders.db")
        return
    pytest.importorskip("psycopg")
    with postgres() as url:
        yield url


@contextmanager
def postgres() -> Iterator[str]:
    """Run a PostgreSQL server; it does not run as root, so root becomes postgres."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    search = os.pathsep.join([os.environ["PATH"], *map(str, programs)])
    initdb, server = (
        shutil.which("initdb", path=search),
        shutil.which("postgres", path=search),
    )
    if initdb is None or server is None:
        pytest.skip("needs PostgreSQL's initdb and postgres")
    user: dict[str, Any] = {"user": "postgres"} if os.getuid() == 0 else {}
    # Only pytest's own user can enter its directory.
    with tempfile.TemporaryDirectory(prefix="sharecons-") as directory:
        if user:
            shutil.chown(directory, "postgres")
        data, (port,) = f"{directory}/data", free_ports(1)
        trust = ["--auth=trust", "--username=test", "--no-sync", "--pgdata", data]
        subprocess.run([initdb, *trust], check=True, capture_output=True, **user)
        options = ["-D", data, "-p", str(port), "-k", directory, "-F"]
        process = subprocess.Popen(
            [server, *options, "-c", "listen_addresses=127.0.0.1"],
            stderr=subprocess.DEVNULL,
            **user,
        )
        try:
            url = f"postgresql://test@127.0.0.1:{port}/postgres"
            wait_for_postgres(url)
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)


def wait_for_postgres(url: str) -> None:
    import psycopg

    def accepts_connections() -> bool:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            return False
        return True

    until_true(accepts_connections, within=20, what=f"a connection to {url}")


def rows_of(url: str) -> list[tuple[Any, ...]]:
    if url.startswith("postgresql:"):
        import psycopg

        with psycopg.connect(url) as postgres:
            return postgres.execute(ROWS).fetchall()
    with closing(sqlite3.connect(url)) as sqlite:
        return sqlite.execute(ROWS).fetchall()


DIES_AFTER_COMMIT = """
import os, signal, sys
import anyio, batch_writer

insert = batch_writer.Database.insert

def insert_and_die(self, rows):
    insert(self, rows)
    os.kill(os.getpid(), signal.SIGKILL)

batch_writer.Database.insert = insert_and_die
anyio.run(batch_writer.main, sys.argv[1])
"""


def test_batch_writer_killed_after_commit_writes_each_record_once(
    broker: EmbeddedBroker, database: str
) -> None:
    values = [b"order %d" % number for number in range(300)]
    for topic in ("orders", "orders.dead"):
        broker.create_topic(topic, partitions=1)
    for start in range(0, 300, 50):
        broker.produce("orders", values[start : start + 50])

    with running(broker, "-c", DIES_AFTER_COMMIT, database) as killed:
        assert killed.wait() == -signal.SIGKILL, killed.printed
    committed = len(rows_of(database))
    assert 0 < committed
    assert not settled(broker, "order-writers", "orders", committed)

    broker.produce("orders", [None])
    program = str(EXAMPLES / "batch_writer.py")
    with running(broker, program, database) as writer:
        writer.until(lambda: settled(broker, "order-writers", "orders", 301))
        writer.stop()

    wrote = re.findall(r"wrote (\d+) of (\d+)", writer.printed)
    assert 300 - committed == sum(int(new) for new, _ in wrote)
    assert 300 == sum(int(count) for _, count in wrote)
    assert [("orders", 0, n, value) for n, value in enumerate(values)] == rows_of(
        database
    )
    (letter,) = broker.records("orders.dead")
    origin = read_origin(letter.headers)
    assert origin is not None
    assert ("an order without a value", 300) == (origin.reason, origin.offset)


# The long job.


@pytest.fixture
def videos(broker: EmbeddedBroker) -> EmbeddedBroker:
    """A broker with one record, whose lock is shorter than its job."""
    broker.create_topic("videos", partitions=1)
    broker.set_group_config("converters", {"share.record.lock.duration.ms": 1500})
    broker.produce("videos", [b"film"])
    return broker


def test_long_job_runs_once_although_its_lock_is_shorter(
    videos: EmbeddedBroker,
) -> None:
    program = str(EXAMPLES / "long_job.py")
    with running(videos, program, "--seconds", "3.5") as job:
        job.until(lambda: settled(videos, "converters", "videos", 1))
        job.stop()

    assert job.printed == "started film delivery 1\nfinished film\nclosed\n"


def test_long_job_is_stopped_if_its_lock_is_lost(videos: EmbeddedBroker) -> None:
    program = str(EXAMPLES / "long_job.py")
    renewal = videos.faults.on("ShareAcknowledge").cut()
    with running(videos, program, "--seconds", "2") as job:
        job.until(lambda: settled(videos, "converters", "videos", 1))
        job.stop()

    events = re.findall(r"^(started|stopped|finished) film", job.printed, re.MULTILINE)
    assert {"started": 2, "stopped": 1, "finished": 1} == Counter(events)
    assert "finished" == events[-1]
    assert "started film delivery 2" in job.printed
    assert 1 == renewal.hits
