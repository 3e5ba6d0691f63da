"""Report failures as they happen and the ten slowest tests; reject tests above a limit.

Limits in seconds, for the body of a test without its fixtures:

    unit        0.25
    scenario    10    tests/scenarios, tests/spark, examples, tests marked `kafka`
    long kill   60    tests marked `thorough`

`@pytest.mark.slow("reason")` moves a test one line down: a unit test that starts
processes can take as long as a scenario; `slow("reason", seconds=120)` is a limit of
its own. Without a reason it is an error. The thorough tier has timeouts only.

Tests run side by side on busy machines. Time in which another process has the core does
not count (Linux reports it per thread), a passed unit test above its limit is measured
once more and the smaller value counts, and only twice the limit fails the run: a
test between the two is a line of the report.
"""

import gc
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
TOLERANCE: Final = 2.0
"""A run fails if a test takes this many times its limit."""

TOO_SLOW: Final = "sharecons/too_slow"
"""The key in pytest's cache of the tests that failed the run by their time."""

SCENARIOS: Final = (
    "scenarios",
    "spark",
    "test_examples.py",
    "test_service_examples.py",
    "test_worker_examples.py",
)
ROOT: Final = Path(__file__).parent
SCHEDULER: Final = Path("/proc/thread-self/schedstat")
SECONDS: Final = pytest.StashKey[float]()


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
    start, delay = time.perf_counter(), _seconds_without_a_core()
    try:
        return (yield)
    finally:
        taken = time.perf_counter() - start - (_seconds_without_a_core() - delay)
        item.stash[SECONDS] = max(taken, 0.0)


def _seconds_without_a_core() -> float:
    """Return how long this thread was ready to run, but had no core."""
    try:
        return int(SCHEDULER.read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test; run a unit test once more if it has passed above its limit."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    limit, seconds = limit_of(item), item.stash.get(SECONDS, 0.0)
    if seconds > limit == LIMITS[0] and all(report.passed for report in reports):
        again: Any = item
        again._initrequest()  # new fixtures, as pytest-rerunfailures makes them
        second = runtestprotocol(item, nextitem=nextitem, log=False)
        if item.stash[SECONDS] < seconds or not all(each.passed for each in second):
            reports, seconds = second, item.stash[SECONDS]
    for report in reports:
        if report.when == "call":
            report.user_properties.append(("seconds", (seconds, limit)))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


class Reporter:
    """Reports on all tests, in all pytest processes."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tests: list[tuple[float, float, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._print_failure(report)
        for name, values in report.user_properties:
            if name == "seconds":
                seconds, limit = values  # type: ignore[misc]
                self._tests.append((seconds, limit, report.nodeid))

    def _print_failure(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        crash = getattr(report.longrepr, "reprcrash", None)
        message = crash.message.splitlines()[0] if crash else "see the summary"
        terminal.ensure_newline()
        terminal.line(f"FAILED ({report.when}) {report.nodeid}: {message}", red=True)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        too_slow = self._too_slow(TOLERANCE)
        if too_slow and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if (cache := getattr(self._config, "cache", None)) is not None:
            cache.set(TOO_SLOW, [test for *_, test in too_slow])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._tests:
            return
        terminalreporter.section(f"the {REPORTED} slowest tests")
        for seconds, _, test in sorted(self._tests, reverse=True)[:REPORTED]:
            terminalreporter.line(f"{seconds:8.2f} s  {test}")
        if too_slow := self._too_slow():
            terminalreporter.section("tests above their limit", red=True)
            for seconds, limit, test in sorted(too_slow, reverse=True):
                terminalreporter.line(f"{seconds:8.2f} s > {limit:g} s  {test}")
            terminalreporter.line(
                'Make them faster, or say why they are not: @pytest.mark.slow("why")'
            )

    def _too_slow(self, times: float = 1.0) -> list[tuple[float, float, str]]:
        return [test for test in self._tests if test[0] > test[1] * times]


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # not one of several processes
        config.pluginmanager.register(Reporter(config), "sharecons_reporter")
