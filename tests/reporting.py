"""Report failures as they happen and the ten slowest tests; reject tests above a limit.

Limits in seconds of CPU time, for the body of a test without its fixtures:

    unit        0.25
    scenario    10    tests/scenarios, tests/spark, examples, tests marked `kafka`
    long kill   60    tests marked `thorough`

`@pytest.mark.slow("reason")` moves a test one line down: a unit test that starts
processes can take as long as a scenario; `slow("reason", seconds=120)` is a limit of
its own. Without a reason it is an error. The thorough tier has timeouts only.

On a busy machine a test waits for a core, for a broker, and for other processes, and
takes up to three times the CPU time as well (measured: cores share caches and units).
So four times the limit in CPU time fails the run, and more time of any kind than the
limit is a line of the report. A passed unit test above its limit is measured once more,
since the first test of a module pays for imports; the smaller value counts.
"""

import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol

from tests.tiers import THOROUGH

__all__ = ["LIMITS"]

LIMITS: Final = (0.25, 10.0, 60.0)
REPORTED: Final = 10
TOLERANCE: Final = 4.0
"""A run fails if a test takes this many times its limit in CPU time."""

SCENARIOS: Final = (
    "scenarios",
    "spark",
    "test_examples.py",
    "test_service_examples.py",
    "test_worker_examples.py",
)
ROOT: Final = Path(__file__).parent
SECONDS: Final = pytest.StashKey[tuple[float, float]]()
"""The CPU time of a test's body, and the time that it took, in seconds."""


def limit_of(item: pytest.Item) -> float:
    """Return how many seconds a test can take; infinity if it has its own timeout."""
    if THOROUGH:
        return float("inf")
    slow = item.get_closest_marker("slow")
    if slow and "seconds" in slow.kwargs:
        return float(slow.kwargs["seconds"])
    line = 0
    if item.get_closest_marker("thorough"):
        line = 2
    elif item.get_closest_marker("kafka") or _is_scenario(item.path):
        line = 1
    line += slow is not None
    return LIMITS[line] if line < len(LIMITS) else float("inf")


def _is_scenario(path: Path) -> bool:
    return path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in SCENARIOS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    without = [
        item.nodeid
        for item in items
        if (marker := item.get_closest_marker("slow")) and not marker.args
    ]
    if without:
        raise pytest.UsageError(f'write @pytest.mark.slow("reason"): {without[0]}')


def pytest_collection_finish() -> None:
    # Thousands of tests are millions of objects: without this, a full collection by
    # the garbage collector takes longer than most tests.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    cpu, start = _cpu_seconds(item), time.perf_counter()
    try:
        return (yield)
    finally:
        taken = time.perf_counter() - start
        item.stash[SECONDS] = (_cpu_seconds(item) - cpu, taken)


def _cpu_seconds(item: pytest.Item) -> float:
    """Return the CPU time of this process and of its children that have ended.

    A broker or a JVM that a test ends would add all CPU time since its start: the
    children of tests on a real Kafka or on Spark do not count.
    """
    used = os.times()
    own = used.user + used.system
    if item.get_closest_marker("kafka") or item.path.is_relative_to(ROOT / "spark"):
        return own
    return own + used.children_user + used.children_system


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test; run a unit test once more if it has passed above its limit."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    limit, seconds = limit_of(item), item.stash.get(SECONDS, (0.0, 0.0))
    if seconds[0] > limit == LIMITS[0] and all(report.passed for report in reports):
        again: Any = item
        again._initrequest()  # new fixtures, as pytest-rerunfailures makes them
        second = runtestprotocol(item, nextitem=nextitem, log=False)
        if item.stash[SECONDS] < seconds or not all(each.passed for each in second):
            reports, seconds = second, item.stash[SECONDS]
    for report in reports:
        if report.when == "call":
            report.user_properties.append(("seconds", (*seconds, limit)))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


class Reporter:
    """Reports on all tests, in all pytest processes."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tests: list[tuple[float, float, float, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._print_failure(report)
        for name, values in report.user_properties:
            if name == "seconds":
                cpu, seconds, limit = values  # type: ignore[misc]
                self._tests.append((seconds, cpu, limit, report.nodeid))

    def _print_failure(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        crash = getattr(report.longrepr, "reprcrash", None)
        message = crash.message.splitlines()[0] if crash else "see the summary"
        terminal.ensure_newline()
        terminal.line(f"FAILED ({report.when}) {report.nodeid}: {message}", red=True)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        too_slow = any(cpu > TOLERANCE * limit for _, cpu, limit, _ in self._tests)
        if too_slow and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._tests:
            return
        terminalreporter.section(f"the {REPORTED} slowest tests")
        for seconds, _, _, test in sorted(self._tests, reverse=True)[:REPORTED]:
            terminalreporter.line(f"{seconds:8.2f} s  {test}")
        slow = [each for each in self._tests if max(each[:2]) > each[2]]
        if slow:
            terminalreporter.section("tests above their limit")
            for seconds, cpu, limit, test in sorted(slow, reverse=True):
                terminalreporter.line(
                    f"{seconds:8.2f} s > {limit:g} s, {cpu:.2f} s of CPU  {test}",
                    red=cpu > TOLERANCE * limit,
                )
            terminalreporter.line(
                "Make tests of much CPU time faster, or say why they are not: "
                '@pytest.mark.slow("why")'
            )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # not one of several processes
        config.pluginmanager.register(Reporter(config), "sharecons_reporter")
