"""Clocks of processes that jump, with libfaketime where it is installed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.chaos.clocks import ProcessClock, find_library, monotonic_ns

PROGRAM = """
import select, sys, time
from pathlib import Path
from tests.chaos.clocks import monotonic_ns

def show():
    print(time.time(), time.monotonic(), monotonic_ns() / 1e9)

show()
Path(sys.argv[1]).write_text("+3600")
select.select([], [], [], 1.5)  # libfaketime breaks time.sleep
show()
"""
HOUR = 3600


def test_library_that_is_not_installed_is_none(tmp_path: Path) -> None:
    assert find_library((str(tmp_path),)) is None


def test_offset_of_a_clock_is_in_its_file(tmp_path: Path) -> None:
    clock = ProcessClock(tmp_path / "so", tmp_path / "clock", has_monotonic=False)

    clock.set(-HOUR)

    assert "-3600\n" == (tmp_path / "clock").read_text()
    assert str(tmp_path / "clock") == clock.environment["FAKETIME_TIMESTAMP_FILE"]


def test_clock_of_the_machine_is_monotonic() -> None:
    before = time.monotonic_ns()

    assert before <= monotonic_ns() <= time.monotonic_ns()


@pytest.mark.slow("a process reads the file once a second")
@pytest.mark.parametrize("has_monotonic", [False, True])
def test_clocks_of_a_process_jump_and_the_journal_has_the_machines(
    tmp_path: Path, has_monotonic: bool
) -> None:
    library = find_library()
    if library is None:
        pytest.skip("libfaketime is not installed: apt-get install faketime")
    clock = ProcessClock(library, tmp_path / "clock", has_monotonic=has_monotonic)

    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "clock")],
        env=dict(os.environ) | clock.environment,
        capture_output=True,
        check=True,
        text=True,
    )

    before, after = (map(float, line.split()) for line in run.stdout.splitlines())
    wall, monotonic, machine = (b - a for a, b in zip(before, after, strict=True))
    assert HOUR < wall < HOUR + 60
    assert HOUR * has_monotonic < monotonic < HOUR * has_monotonic + 60
    assert 1 < machine < 60
