"""Processes that are stopped (SIGSTOP) for longer than the locks of their records."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from tests.kafka_plugin import Admin
from tests.scenarios.dead_letter_setup import LIMIT_2, Setup, archived_offsets
from tests.scenarios.embedded_admin import ON_ASYNCIO
from tests.scenarios.versions import since_4_3
from tests.waiting import until, until_true

pytestmark = [
    pytest.mark.anyio,
    ON_ASYNCIO,
    since_4_3,
    pytest.mark.timeout(60),
    pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals"),
]

LOCK = 1.0
CONFIG = {**LIMIT_2, "share.record.lock.duration.ms": "1000"}
LIMIT = 2
WARM_UP, FEW = 40, 8
STARTS = 30.0
"""Seconds in which a program starts."""

PROGRAM = "tests.scenarios.stopped_process_program"


@contextmanager
def running(
    setup: Setup, log: Path, *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the program; end it with SIGTERM."""
    command = [sys.executable, "-m", PROGRAM, setup.admin.bootstrap_servers]
    command += [setup.queue.topic, setup.queue.group, str(WARM_UP), *arguments]
    with log.open("w") as stderr, subprocess.Popen(command, stderr=stderr) as process:
        try:
            yield process
            process.terminate()
            assert 0 == process.wait(20)
        finally:
            process.kill()


def is_stopped(process: subprocess.Popen[bytes]) -> bool:
    flags = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, flags) is not None


def continue_late(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has stopped, and continue it after the locks."""
    until_true(lambda: is_stopped(process), what="the process has stopped")
    end = time.monotonic() + 1.3 * LOCK
    until_true(lambda: time.monotonic() > end)
    process.send_signal(signal.SIGCONT)


@pytest.mark.slow("starts a process, and stops it for longer than two locks")
@pytest.mark.parametrize("is_worker", [True, False], ids=["worker", "consumer"])
async def test_process_that_is_stopped_beyond_the_last_lock_names_its_records(
    admin: Admin, tmp_path: Path, is_worker: bool
) -> None:
    setup, log = Setup(admin, CONFIG), tmp_path / "stderr"
    setup.queue.produce([b"x"] * WARM_UP)
    with running(setup, log, *([setup.dead] if is_worker else [])) as process:
        await until(lambda: log.read_text().count("received") == WARM_UP, STARTS)
        await setup.wait_until_settled()
        setup.queue.produce([b"x"] * FEW)
        for _ in range(LIMIT):
            await anyio.to_thread.run_sync(continue_late, process)
        await setup.wait_until_settled()
        if is_worker:
            await until(lambda: log.read_text().count("record dead-lettered") == FEW)

    text = log.read_text()
    last = [*range(WARM_UP, WARM_UP + FEW)]
    received = [int(offset) for offset in re.findall(r"received (\d+)", text)]
    assert {*received} == {*range(WARM_UP)}
    letters = [origin.offset for origin in await setup.origins()]
    assert letters == (last if is_worker else [])
    assert archived_offsets(text) == ([] if is_worker else last)
