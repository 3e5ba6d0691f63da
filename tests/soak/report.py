"""The table of a run, and its results as JSON."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tests.bench.machine import describe_machine
from tests.soak.limits import Trend
from tests.soak.results import GroupResult, RunResult

__all__ = ["save", "table"]


def table(result: RunResult) -> Iterator[str]:
    """Yield the lines about a run."""
    verdict = "ok" if result.is_good else "FAILED"
    kills = ", ".join(f"{role} at {at:.0f} s" for role, at in result.kills)
    yield f"{verdict}: {result.seconds / 3600:.2f} h; killed: {kills or 'none'}"
    if not result.is_meaningful:
        yield "The run is short: its slopes mean little, and do not decide."
    for error in result.errors:
        yield f"not carried out: {error}"
    for group in result.groups:
        yield ""
        yield from _group(group)


def _group(group: GroupResult) -> Iterator[str]:
    verdict = group.verdict
    duplicates = ", ".join(f"{n} {why}" for why, n in verdict.duplicates.items())
    yield (
        f"{group.name}: {verdict.produced} produced, {len(verdict.lost)} lost"
        f" {verdict.lost[:5] or ''}, {verdict.handled} handled, {verdict.rejected}"
        f" rejected, {verdict.dead} dead letters, duplicates: {duplicates or 0},"
        f" unexplained {len(verdict.unexplained)} {verdict.unexplained[:5] or ''},"
        f" longest delay {verdict.delay:.1f} s, unconfirmed {group.unconfirmed}"
    )
    for problem in group.problems:
        yield f"  {problem}"
    yield f"  {'':12} {'median':>10} {'per hour':>10} {'95 % from':>10} {'to':>10}"
    for trend in group.trends:
        yield _trend(trend)
    for name in ("p50 at kills", "p99 at kills"):
        values = sorted(value for _, value in group.series.get(name, ()))
        if values:
            yield f"  {name:12} {values[len(values) // 2]:10.1f}"
    for name, count in group.grown:
        yield f"  +{count} {name}"


def _trend(trend: Trend) -> str:
    line = trend.line
    sign = "" if trend.is_good else "  EXCEEDED"
    return (
        f"  {trend.name:12} {line.middle:10.1f} {line.slope:+10.2f} {line.low:+10.2f}"
        f" {line.high:+10.2f}  noise {line.noise:.2f}, limit {trend.limit}{sign}"
    )


def save(result: RunResult, path: Path) -> None:
    machine = describe_machine(result.options.version)
    content = {"machine": machine, "is_good": result.is_good, **asdict(result)}
    path.write_text(json.dumps(content, indent=1))
