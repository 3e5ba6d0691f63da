"""The programs in examples/ that are services: failures, a restart, SIGTERM, the log.

Each test reads from the log alone what became of each record.
"""

import json
import math
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sharecons.copies.dead_letter_headers import read_origin
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from tests.cli.run.running import Command
from tests.waiting import until_true

pytestmark = pytest.mark.slow("starts processes", seconds=10)

EXAMPLES = Path(__file__).parent.parent / "examples"


@contextmanager
def service(directory: Path, *arguments: str, **environment: str) -> Iterator[Command]:
    """Run `sharecons run` in examples/, with a file for its log."""
    directory.mkdir()
    with (directory / "stderr").open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "sharecons", "run", *arguments],
            cwd=EXAMPLES,
            stderr=stderr,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                **environment,
            },
        )
    try:
        yield Command(process, directory)
    finally:
        process.kill()
        process.wait()


def stopped(command: Command) -> float:
    """Send SIGTERM, which must be a clean end; return the seconds that it took."""
    began = time.monotonic()
    assert 0 == command.stop(), command.stderr
    return time.monotonic() - began


def seconds_of_stop(command: Command) -> float:
    """Return the time from the signal to the end of the worker, from the log."""
    (stops,), (ended,) = command.events("worker stops"), command.events("worker ended")
    began, end = (datetime.fromisoformat(each["timestamp"]) for each in (stops, ended))
    return (end - began).total_seconds()


def position(event: dict[str, Any]) -> tuple[str, int, int]:
    return event["topic"], event["partition"], event["offset"]


def code_at(event: dict[str, Any]) -> str:
    """Return the line of code that a log event names."""
    found = re.fullmatch(r"(.*):(\d+) in \w+", event["at"])
    assert found is not None, event
    return Path(found[1]).read_text().splitlines()[int(found[2]) - 1].strip()


def dead_origins(broker: EmbeddedBroker, topic: str) -> dict[Any, str]:
    """Return the reasons of dead letters, by the positions of their records."""
    origins = [read_origin(letter.headers) for letter in broker.records(topic)]
    return {each[:3]: each.reason for each in origins if each is not None}


def assert_each_failed_attempt_is_counted(command: Command) -> None:
    """Each attempt that failed has a line, or is in the number of further ones."""
    lines = len(command.events("attempt failed"))
    more = sum(event["count"] for event in command.events("more attempts failed"))
    (ended,) = command.events("worker ended")
    assert lines + more == ended["failed"]


# The order processor.

CALL_TIMEOUT = 1.0
"""Seconds; a payment takes milliseconds, but not on busy cores."""


class Payments(ThreadingHTTPServer):
    """A payment service. The first call for an order can fail, by its number."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), PaymentHandler)
        self.calls: Counter[int] = Counter()
        self.counting = threading.Lock()
        self.charged: set[int] = set()
        self.hanging: set[int] = set()
        self.has_ended = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/charges"


class PaymentHandler(BaseHTTPRequestHandler):
    server: Payments

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        order = int(self.headers["Idempotency-Key"])
        with self.server.counting:  # a call that timed out can overlap the next one
            self.server.calls[order] += 1
            is_first = self.server.calls[order] == 1
        if order == 13:
            self._respond(500)
        elif order == 17:
            self._respond(402)
        elif is_first and order % 50 == 0:
            self.server.hanging.add(order)
            self.server.has_ended.wait(60)
        elif is_first and order % 23 == 0:
            self.close_connection = True  # without a response
        elif is_first and order % 19 == 0:
            self._respond(500)
        else:
            self.server.charged.add(order)
            self._respond(200)

    def _respond(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@pytest.fixture
def payments() -> Iterator[Payments]:
    with Payments() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.has_ended.set()
            server.shutdown()
            thread.join()


def produce_orders(broker: EmbeddedBroker, first: int, count: int) -> None:
    orders = [{"id": order, "amount": 5} for order in range(first, first + count)]
    values = [json.dumps(order).encode() for order in orders]
    for start in range(0, count, 20):
        partition = start // 20 % 3
        broker.produce("orders", values[start : start + 20], partition=partition)


def test_order_processor_loses_no_order(payments: Payments, tmp_path: Path) -> None:
    program = ("order_processor:worker",)
    with EmbeddedBroker(topics={"orders": 3}, settings=SETTINGS) as broker:
        environment = {
            "BOOTSTRAP_SERVERS": broker.bootstrap_servers,
            "PAYMENTS_URL": payments.url,
            "CALL_TIMEOUT": str(CALL_TIMEOUT),
            "FIRST_DELAY": "0.05",
        }
        produce_orders(broker, 1, 199)
        broker.produce("orders", [b"{not JSON", b'{"id": 1}'], partition=0)
        with service(tmp_path / "first", *program, **environment) as first:
            # Order 17 has its letter: a delivery that the broker's end takes back
            # would count as an attempt.
            first.wait_until(
                lambda: (
                    len(payments.charged) > 100
                    and ("orders", 0, 16) in dead_origins(broker, "orders.dead")
                )
            )
            broker.stop_broker(1)
            broker.start_broker(1)
            first.wait_until(lambda: len(dead_origins(broker, "orders.dead")) == 4)
            produce_orders(broker, 200, 101)  # the first of these hangs
            first.wait_until(lambda: 200 in payments.hanging)
            stopped(first)
        with service(tmp_path / "second", *program, **environment) as second:
            broker.wait_until_settled_sync("order-processors")
            stopped(second)
        dead = dead_origins(broker, "orders.dead")
        values = {
            ("orders", each.partition, each.offset): each.value
            for each in broker.records("orders")
        }

    # The call that hangs ends at its timeout; then the worker leaves.
    assert seconds_of_stop(first) < CALL_TIMEOUT + 1.5
    assert {*range(1, 301)} - {13, 17} == payments.charged
    assert {50, 100, 150, 200, 250, 300} == payments.hanging
    names = {values[each]: each for each in dead}
    declined = names.pop(b'{"id": 17, "amount": 5}')
    broken = names.pop(b'{"id": 13, "amount": 5}')
    assert {b"{not JSON", b'{"id": 1}'} == {*names}

    (starts,) = first.events("worker starts")
    assert ("order-processors", "orders") == (starts["group"], starts["topics"])
    (stopping,) = first.events("worker stops")
    assert CALL_TIMEOUT == stopping["grace"]
    assert_each_failed_attempt_is_counted(first)
    assert_each_failed_attempt_is_counted(second)
    check_lines_of_failures(first)
    # The first one of each: after a lost confirmation there is a second.
    lettered = reversed(first.events("record dead-lettered"))
    letters = {position(each): each for each in lettered}
    assert {*dead} == {*letters}
    undecodable = {names[b"{not JSON"]}
    assert {*dead} - undecodable == {
        each for each, reason in dead.items() if reason == letters[each]["reason"]
    }
    assert all("not deserialized" in letters[each]["reason"] for each in undecodable)
    assert 1 == letters[declined]["attempt"]
    assert "raise DeadLetter(" in code_at(letters[declined])
    assert "declined" in letters[declined]["reason"]
    assert 5 == letters[broken]["attempt"]
    assert "reply.raise_for_status()" == code_at(letters[broken])


def check_lines_of_failures(command: Command) -> None:
    failed = command.events("attempt failed")
    assert {"order_processor.py"} == {
        Path(event["at"].partition(":")[0]).name for event in failed
    }
    by_type = {event["error"].partition(":")[0]: event for event in failed}
    assert "reply = await client.post(" == code_at(by_type["TimeoutError"])
    assert f"timeout of {CALL_TIMEOUT:g} s" in by_type["TimeoutError"]["error"]
    assert "reply.raise_for_status()" == code_at(by_type["HTTPStatusError"])
    assert "reply = await client.post(" == code_at(by_type["RemoteProtocolError"])
    follows = re.compile(r"attempt \d in [\d.]+ s|dead letter|released: .*")
    assert all(follows.fullmatch(event["then"]) for event in failed)
    assert {"topic", "partition", "offset", "attempt"} <= failed[0].keys()


# The CPU jobs.

PRIME = 2**61 - 1
"""Its square root is 1.5e9: trying these divisors takes minutes."""


def test_cpu_jobs_stop_between_steps_and_lose_no_number(tmp_path: Path) -> None:
    numbers = [10**9 + number for number in range(200)]
    with EmbeddedBroker(
        topics={"numbers": 2, "numbers.dead": 1}, settings=SETTINGS
    ) as broker:
        for number in numbers[::10]:
            some = [b"%d" % each for each in range(number, number + 10)]
            broker.produce("numbers", some, partition=number // 10 % 2)
        broker.produce("numbers", [b"ten", b"1"], partition=0)
        program = (
            *("cpu_jobs:factor", "--topic", "numbers", "--group", "factoring"),
            *("--bootstrap-server", broker.bootstrap_servers),
            *("--concurrency", "2", "--grace", "1", "--dead-letter", "numbers.dead"),
            *("--max-attempts", "2", "--retry-initial", "0.05"),
        )
        with service(tmp_path / "first", *program) as first:
            first.wait_until(lambda: len(factored(first)) > 50)
            broker.stop_broker(1)
            broker.start_broker(1)
            first.wait_until(lambda: len(dead_origins(broker, "numbers.dead")) == 2)
            broker.produce("numbers", [b"%d" % PRIME], partition=1)
            until_true(lambda: waits_at(broker, "numbers", 1, 100))
            seconds = stopped(first)
        held = broker.group("factoring")
        dead = dead_origins(broker, "numbers.dead")

    assert 1.0 < seconds < 3.0
    assert {*map(str, numbers)} == {*factored(first)}
    assert {("numbers", 0, 100), ("numbers", 0, 101)} == {*dead}
    assert () == held.members
    failed = [position(event) for event in first.events("attempt failed")]
    assert [("numbers", 0, 100)] * 2 == failed
    assert {'number = int(value or b"")'} == {
        code_at(event).partition("  #")[0] for event in first.events("attempt failed")
    }
    letters = {position(each): each for each in first.events("record dead-lettered")}
    assert {*dead} == {*letters}
    assert all(reason == letters[each]["reason"] for each, reason in dead.items())
    assert "raise DeadLetter(" in code_at(letters["numbers", 0, 101])
    (cancelled,) = first.events(
        "handlers cancelled, because the worker ends; their records are released and "
        "delivered again, except last deliveries"
    )
    assert "numbers-1@100" == cancelled["positions"]
    (ended,) = first.events("worker ended")
    assert 1 == ended["released"]


def factored(command: Command) -> list[str]:
    """Return the numbers whose factors were logged; check these."""
    products = re.findall(r'"event": "(\d+) = ([\d* ]+)"', command.stderr)
    return [
        number
        for number, factors in products
        if int(number) == math.prod(map(int, factors.split(" * ")))
    ]


def waits_at(broker: EmbeddedBroker, topic: str, partition: int, offset: int) -> bool:
    """Return whether a group has settled all before an offset."""
    return any(
        (each.topic, each.partition, each.start_offset) == (topic, partition, offset)
        for each in broker.group("factoring").partitions
    )
