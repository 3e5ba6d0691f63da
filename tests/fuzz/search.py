"""Draws cases for a target, and keeps one case for each kind of escape."""

import contextlib
import time
import traceback
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

import sharecons
from tests.fuzz.corpus import encode_case
from tests.fuzz.limits import LimitError, limited
from tests.fuzz.target import Case, Target

__all__ = ["Escape", "Report", "execute", "search"]

ROUND: Final = 250
"""Cases per run of Hypothesis: between two runs the time is checked, and known escapes
no longer count."""

MAX_SHRINK: Final = 20.0
"""Seconds to shrink an escape."""

PACKAGES: Final = tuple(
    str(path)
    for path in (Path(sharecons.__file__).parent, Path(__file__).parent / "targets")
)


@dataclass(frozen=True, slots=True)
class Escape:
    """A case that its target does not allow.

    Attributes:
        kind: the exception's class and the function that raised it: equal for two
            cases with the same fault.
        text: the traceback.
    """

    case: Case
    kind: str
    text: str


@dataclass(slots=True)
class Report:
    """The results of a search."""

    target: Target
    executions: int = 0
    seconds: float = 0.0
    escapes: list[Escape] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Executions per second, including the time to draw the cases."""
        return self.executions / self.seconds if self.seconds else 0.0


def execute(target: Target, case: Case) -> Escape | None:
    """Check a case within the limits of its target; return its escape, if it is one."""
    try:
        with limited(
            seconds=target.seconds, memory=target.memory, traces=target.traces
        ):
            target.check(case)
    except (Exception, LimitError) as error:
        return Escape(case, _kind(error), "".join(traceback.format_exception(error)))
    return None


def search(
    target: Target,
    *,
    seed: int,
    examples: int | None = None,
    seconds: float | None = None,
) -> Report:
    """Draw cases until their number or the time is reached.

    Args:
        seed: decides the cases; the same cases with the same Hypothesis.
        examples: the number of cases; None: the number is not limited.
        seconds: how long; None: the time is not limited.
    """
    report = Report(target)
    with contextlib.suppress(Exception):
        target.check(_first_case(target))  # imports are no part of an execution
    began = time.perf_counter()
    while True:
        left = ROUND if examples is None else min(ROUND, examples - report.executions)
        if seconds is not None and time.perf_counter() - began >= seconds:
            break
        if left <= 0:
            break
        deadline = inf if seconds is None else began + seconds
        _Round(report, deadline).run(seed, left)
        seed += 1
    report.seconds = time.perf_counter() - began
    return report


def _first_case(target: Target) -> Case:
    """Return the simplest case."""
    found: list[Case] = []
    _run(target, 0, 1, found.append)
    return found[0]


class _Round:
    """One run of Hypothesis, which looks for one kind of escape at most."""

    def __init__(self, report: Report, deadline: float) -> None:
        self._report = report
        self._deadline = deadline
        self._known = {each.kind for each in report.escapes}
        self._smallest: Escape | None = None
        self._shrinks_until = 0.0

    def run(self, seed: int, examples: int) -> None:
        try:
            _run(self._report.target, seed, examples, self._check)
        except Exception:
            # hypothesis.Flaky: the case was no escape when it was repeated.
            if self._smallest is None:
                raise
        if self._smallest is not None:
            self._report.escapes.append(self._smallest)

    def _check(self, case: Case) -> None:
        if time.perf_counter() > self._deadline and self._smallest is None:
            return  # the rest of this round
        self._report.executions += 1
        found = execute(self._report.target, case)
        if found is None or found.kind in self._known:
            return
        smallest = self._smallest
        if smallest is None:
            self._shrinks_until = time.perf_counter() + MAX_SHRINK
        elif found.kind != smallest.kind:
            return
        if smallest is None or _size(found) <= _size(smallest):
            self._smallest = found
        if time.perf_counter() < self._shrinks_until:
            raise AssertionError(found.kind)


def _run(
    target: Target, seed: int, examples: int, check: Callable[[Case], None]
) -> None:
    @seeded(seed)
    @settings(
        database=None,
        deadline=None,
        max_examples=examples,
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=target.cases)
    def run(case: Case) -> None:
        check(case)

    run()


def _size(escape: Escape) -> int:
    return len(encode_case(escape.case))


def _kind(error: BaseException) -> str:
    """Return what distinguishes this fault from others."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, LimitError):
        return f"LimitError: {'time' if 'CPU' in str(error) else 'memory'}"
    return f"{type(error).__name__} in {_origin(error, PACKAGES)}"


def _origin(error: BaseException, packages: Collection[str]) -> str:
    """Return the innermost function of sharecons, or of the target."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if each.filename.startswith(tuple(packages))]
    if not own:
        return "another package"
    return f"{Path(own[-1].filename).stem}.{own[-1].name}"
