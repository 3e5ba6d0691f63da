"""Report the ten slowest tests, and fail the run if a test is above its limit.

Limits in seconds, for the body of a test without its fixtures:

    unit        0.25
    scenario    10    tests/scenarios, tests/spark, tests marked `kafka`
    long kill   60    tests marked `thorough`

`@pytest.mark.slow("reason")` moves a test one line down: a unit test that starts
processes can take as long as a scenario. A test above 60 s needs a `timeout` as well.

Time in which another process has the core does not count, since tests run side by
side. Linux reports it per thread; elsewhere all time counts. The thorough tier has no
limits except timeouts.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.tiers import THOROUGH

__all__ = ["LIMITS"]

LIMITS: Final = (0.25, 10.0, 60.0)
REPORTED: Final = 10
SCENARIOS: Final = ("scenarios", "spark")
ROOT: Final = Path(__file__).parent
SCHEDULER: Final = Path("/proc/thread-self/schedstat")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    start, delay = time.perf_counter(), _seconds_without_a_core()
    cpu = time.process_time()
    try:
        return (yield)
    finally:
        taken = time.perf_counter() - start - (_seconds_without_a_core() - delay)
        values = (max(taken, 0.0), limit_of(item), time.process_time() - cpu)
        item.user_properties.append(("seconds", values))


def limit_of(item: pytest.Item) -> float:
    """Return how many seconds a test can take; infinity if it has its own timeout."""
    if THOROUGH:
        return float("inf")
    line = 0
    if item.get_closest_marker("thorough"):
        line = 2
    elif item.get_closest_marker("kafka") or _is_scenario(item.path):
        line = 1
    if item.get_closest_marker("slow"):
        line += 1
    return LIMITS[line] if line < len(LIMITS) else float("inf")


def _is_scenario(path: Path) -> bool:
    return path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in SCENARIOS


def _seconds_without_a_core() -> float:
    """Return how long this thread was ready to run, but had no core."""
    try:
        return int(SCHEDULER.read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


class SlowTests:
    """Collects the seconds of all tests, in all pytest processes."""

    def __init__(self) -> None:
        self._tests: list[tuple[float, float, str]] = []

    @property
    def too_slow(self) -> list[tuple[float, float, str]]:
        return [test for test in self._tests if test[0] > test[1]]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            for name, values in report.user_properties:
                if name == "seconds":
                    seconds, limit, _ = values  # type: ignore[misc]
                    self._tests.append((seconds, limit, report.nodeid))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.too_slow and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._tests:
            return
        terminalreporter.section(f"the {REPORTED} slowest tests")
        for seconds, _, test in sorted(self._tests, reverse=True)[:REPORTED]:
            terminalreporter.line(f"{seconds:8.2f} s  {test}")
        if self.too_slow:
            terminalreporter.section("tests above their limit", red=True)
            for seconds, limit, test in sorted(self.too_slow, reverse=True):
                terminalreporter.line(f"{seconds:8.2f} s > {limit:g} s  {test}")
            terminalreporter.line(
                'Make them faster, or say why they are not: @pytest.mark.slow("why")'
            )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # not one of several processes
        config.pluginmanager.register(SlowTests(), "slow_tests")
