"""A consumer with `handle_signals` in a process of its own, which receives signals."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from sharecons.testing import EmbeddedBroker, OffsetState
from sharecons.testing.kafka.ports import free_ports
from sharecons.testing.pytest_plugin import SETTINGS

pytestmark = [
    pytest.mark.slow("starts a process"),
    pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals"),
    pytest.mark.parametrize("loop", ["asyncio", "trio"]),
]

PROGRAM = """
import sys, time
import anyio
from sharecons import ShareConsumer

servers, loop, handler = sys.argv[1:]

async def handle(consumer, record):
    print("handling", record.value.decode(), flush=True)
    if handler == "blocking":
        time.sleep(0.5)
    elif handler == "slow":
        await anyio.sleep(0.5)
    elif handler == "endless":
        while consumer.stop_signal is None:
            await anyio.sleep(0.01)
        print("stopping", flush=True)
        await anyio.sleep(60)

async def report_start():
    print("starting", flush=True)

async def main():
    if handler != "fast":
        return await consume()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(report_start)
        await consume()

async def consume():
    consumer = ShareConsumer("orders", group_id="billing", bootstrap_servers=servers,
                             handle_signals=True)
    async with consumer:
        print("started", flush=True)
        async for record in consumer:
            await handle(consumer, record)
    print("stopped by", consumer.stop_signal.name, flush=True)

anyio.run(main, backend=loop)
"""


class Program:
    """A running program, and the lines that it has printed."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout is not None
        self._stdout: IO[str] = process.stdout

    def read_until(self, expected: str) -> list[str]:
        """Return the lines up to the expected one."""
        lines = []
        for line in self._stdout:
            lines.append(line.rstrip())
            if lines[-1] == expected:
                return lines
        raise AssertionError(f"{expected!r} is not in {lines}")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> tuple[list[str], str, int]:
        """Wait for the end; return the other lines, the errors, and the exit code."""
        printed, errors = self.process.communicate(timeout=20)
        return printed.splitlines(), errors, self.process.returncode


@contextmanager
def running(servers: str, loop: str, handler: str = "fast") -> Iterator[Program]:
    # A shell's background process and its children ignore SIGINT by default.
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, servers, loop, handler],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        yield Program(process)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def orders() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings=SETTINGS, topics={"orders": 1}) as broker:
        broker.set_group_config("billing", {"share.auto.offset.reset": "earliest"})
        yield broker


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_idle_loop_ends_on_a_signal_without_a_traceback(
    orders: EmbeddedBroker, loop: str, number: signal.Signals
) -> None:
    orders.produce("orders", [b"a"])
    with running(orders.bootstrap_servers, loop) as program:
        program.read_until("handling a")
        program.send(number)
        printed, errors, code = program.end()

    assert [f"stopped by {number.name}"] == printed
    assert ("", 0) == (errors, code)
    assert () == orders.group("billing").members


@pytest.mark.parametrize("handler", ["slow", "blocking"])
def test_signal_during_a_handler_accepts_its_record_and_releases_the_others(
    orders: EmbeddedBroker, loop: str, handler: str
) -> None:
    orders.produce("orders", [b"a", b"b", b"c"])
    with running(orders.bootstrap_servers, loop, handler) as program:
        program.read_until("handling a")
        program.send(signal.SIGTERM)
        printed, errors, code = program.end()

    assert ["stopped by SIGTERM"] == printed
    assert ("", 0) == (errors, code)
    (partition,) = orders.group("billing").partitions
    assert 1 == partition.start_offset
    assert {OffsetState.AVAILABLE} >= {each.state for each in partition.in_flight}


def test_signal_during_the_start_ends_the_loop_before_a_record(loop: str) -> None:
    (port,) = free_ports(1)  # no broker is there
    with running(f"localhost:{port}", loop) as program:
        program.read_until("starting")
        program.send(signal.SIGINT)
        printed, errors, code = program.end()

    assert ["started", "stopped by SIGINT"] == printed
    assert 0 == code
    # A warning that no broker responds can come before the signal.
    assert not errors or errors.startswith("no broker reached yet")
    assert 1 >= len(errors.splitlines())


def test_second_sigterm_ends_the_process(orders: EmbeddedBroker, loop: str) -> None:
    orders.produce("orders", [b"a"])
    with running(orders.bootstrap_servers, loop, "endless") as program:
        program.read_until("handling a")
        program.send(signal.SIGTERM)
        program.read_until("stopping")
        program.send(signal.SIGTERM)
        printed, errors, code = program.end()

    assert [] == printed
    assert ("", -signal.SIGTERM) == (errors, code)


def test_second_ctrl_c_interrupts_the_handler(
    orders: EmbeddedBroker, loop: str
) -> None:
    orders.produce("orders", [b"a"])
    with running(orders.bootstrap_servers, loop, "endless") as program:
        program.read_until("handling a")
        program.send(signal.SIGINT)
        program.read_until("stopping")
        program.send(signal.SIGINT)
        printed, errors, code = program.end()

    assert [] == printed
    assert "KeyboardInterrupt" in errors.splitlines()[-1]
    assert -signal.SIGINT == code
    assert () == orders.group("billing").members
