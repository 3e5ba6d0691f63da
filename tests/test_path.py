"""The functions that a record passes, as docs/traces.md lists them."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = (ROOT / "docs" / "traces.md").read_text()

CASES: Final = {
    "implicit": "Implicit loop",
    "explicit": "Explicit acknowledgement",
    "idle": "Idle wait",
    "failing": "A record that fails",
}
"""The headings of the page, by the function of `tests.tracing`."""

Stop = tuple[str, str]
"""A file of the package, and the qualified name of a function in it."""


def section(case: str) -> str:
    return PAGE.split(f"\n## {CASES[case]}\n")[1].split("\n## ")[0]


def listed_stops(case: str) -> list[Stop]:
    found = re.findall(
        r"^\d+\. `([\w/]+\.py)` `([\w.]+)`: ", section(case), re.MULTILINE
    )
    assert len(found) == len(re.findall(r"^\d+\. ", section(case), re.MULTILINE))
    return found


def trace(case: str) -> tuple[list[Stop], list[Stop]]:
    """Return the calls of a case, and the pairs of packages."""
    # In another process: caches that other tests have filled shorten the trace.
    run = subprocess.run(
        [sys.executable, "-m", "tests.tracing", case],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    return [tuple(call) for call in result["calls"]], result["pairs"]


def first_missing(stops: list[Stop], calls: list[Stop]) -> str | None:
    """Return what is wrong with the first stop that the calls do not pass in order."""
    files = {name: file for file, name in calls}
    at = 0
    for number, stop in enumerate(stops, 1):
        if stop in calls[at:]:
            at = calls.index(stop, at) + 1
            continue
        file, name = stop
        if stop in calls:
            return f"{number}. {name} is passed before stop {number - 1} only"
        if name in files:
            return f"{number}. {name} is in {files[name]}, not in {file}"
        return f"{number}. {file} {name} is not passed"
    return None


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize("case", CASES)
def test_trace_passes_the_listed_stops_in_order(case: str) -> None:
    calls, pairs = trace(case)
    listed = re.search(r"(\d+)\s+pairs\s+of\s+packages", section(case))

    assert first_missing(listed_stops(case), calls) is None
    assert listed is not None
    assert int(listed[1]) == len(pairs), pairs


@pytest.mark.parametrize(
    ("stops", "problem"),
    [
        ([("a.py", "f"), ("b.py", "g")], None),
        ([("b.py", "g"), ("a.py", "f")], "2. f is passed before stop 1 only"),
        ([("c.py", "g")], "1. g is in b.py, not in c.py"),
        ([("c.py", "h")], "1. c.py h is not passed"),
    ],
)
def test_stop_that_is_not_passed_in_order_is_named(
    stops: list[Stop], problem: str | None
) -> None:
    assert first_missing(stops, [("a.py", "f"), ("b.py", "g")]) == problem
