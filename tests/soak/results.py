"""The results of a run: series, their trends, and the verdict. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from tests.chaos.ledger import Verdict
from tests.soak.limits import FLAT, MEANINGFUL, Trend, grown_types, judge
from tests.soak.minutes import Minute
from tests.soak.sample import Sample
from tests.soak.schedule import warm_up
from tests.soak.slopes import Points

__all__ = ["GroupResult", "RunOptions", "RunResult", "new_group_result", "series"]

HOUR: Final = 3600.0
JUDGED: Final = {"rss", "records/s", *FLAT}

Series = Mapping[str, Points]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run.

    Attributes:
        rate: records/s of each of the two groups.
    """

    hours: float
    rate: float = 200.0
    version: str = "4.4.0"

    @property
    def seconds(self) -> float:
        return self.hours * HOUR

    @property
    def interval(self) -> float:
        """Seconds between two samples: a minute, in short runs less."""
        return min(60.0, self.seconds / 60)


@dataclass(frozen=True)
class GroupResult:
    """One group, and its measured process.

    Attributes:
        problems: processes that died or did not stop.
        unconfirmed: records that the brokers did not confirm, and that are not counted.
        series: hours and values, by the names of the quantities.
        trends: the series after the warm-up, with their limits.
        grown: the types with most new objects, if memory or objects have grown.
    """

    name: str
    verdict: Verdict
    problems: Sequence[str]
    unconfirmed: int
    series: Series
    trends: Sequence[Trend] = field(default_factory=list)
    grown: Sequence[tuple[str, int]] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """True if nothing is lost and no process has died."""
        return not (self.verdict.lost or self.verdict.unexplained or self.problems)


@dataclass(frozen=True)
class RunResult:
    """One run.

    Attributes:
        seconds: how long records were produced.
        kills: the role of each, and seconds after the begin.
        errors: kills that could not be carried out.
    """

    options: RunOptions
    seconds: float
    kills: Sequence[tuple[str, float]]
    errors: Sequence[str]
    groups: Sequence[GroupResult]

    @property
    def is_meaningful(self) -> bool:
        """True if the run was long enough for its slopes to decide."""
        return (self.seconds - warm_up(self.seconds)) / HOUR >= MEANINGFUL

    @property
    def is_good(self) -> bool:
        slopes = all(trend.is_good for each in self.groups for trend in each.trends)
        complete = all(each.is_complete for each in self.groups) and not self.errors
        return complete and (slopes or not self.is_meaningful)


def new_group_result(
    name: str,
    verdict: Verdict,
    problems: Sequence[str],
    unconfirmed: int,
    measured: Series,
    samples: Sequence[Sample],
    *,
    seconds: float,
    begin: float,
) -> GroupResult:
    """Return the result of a group, with the trends after the warm-up."""
    first = warm_up(seconds)
    trends = [
        judge(name, [(at, value) for at, value in points if at * HOUR >= first])
        for name, points in measured.items()
        if name in JUDGED
    ]
    grown: Sequence[tuple[str, int]] = []
    if any(not t.is_good and t.name in ("rss", "objects") for t in trends):
        late = [each for each in samples if each.seconds >= begin + first]
        grown = grown_types(late[0].types, late[-1].types)
    return GroupResult(name, verdict, problems, unconfirmed, measured, trends, grown)


def series(
    samples: Sequence[Sample],
    minutes: Sequence[Minute],
    lines: Sequence[tuple[float, int]],
    *,
    begin: float,
    end: float,
) -> Series:
    """Return hours after the begin and values, by quantity.

    Args:
        lines: when the log of the process had how many lines.
    """
    during = [each for each in samples if begin <= each.seconds <= end]

    def sampled(name: str) -> Points:
        return [((s.seconds - begin) / HOUR, getattr(s, name)) for s in during]

    return {
        "rss": sampled("rss"),
        "objects": sampled("objects"),
        "garbage": sampled("garbage"),
        "descriptors": sampled("descriptors"),
        "tasks": sampled("tasks"),
        "threads": sampled("threads"),
        "records/s": [(each.at / HOUR, each.rate) for each in minutes],
        **_latencies(minutes),
        "log lines": list(_per_minute([(t, n) for t, n in lines if t <= end], begin)),
    }


def _latencies(minutes: Sequence[Minute]) -> Series:
    found: dict[str, list[tuple[float, float]]] = {
        name: [] for name in ("p50", "p99", "p50 at kills", "p99 at kills")
    }
    for minute in minutes:
        for latency, suffix in ((minute.beside, ""), (minute.during, " at kills")):
            if latency is not None:
                found[f"p50{suffix}"].append((minute.at / HOUR, latency.p50))
                found[f"p99{suffix}"].append((minute.at / HOUR, latency.p99))
    return found


def _per_minute(
    lines: Sequence[tuple[float, int]], begin: float
) -> Iterator[tuple[float, float]]:
    for (then, before), (at, count) in pairwise(lines):
        if at > then:
            yield (at - begin) / HOUR, (count - before) * 60 / (at - then)
