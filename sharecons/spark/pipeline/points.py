"""The points of a run's plots, and its figures.

Rule: no file, no Spark and no HTML here.

A plot has a point for each batch, or for each interval of time if there are more than
MAX_POINTS batches. A point has the mean rates and the highest latency and backlog of
its batches. The batches of a requeue are left out: their records were counted when they
came to quarantine.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final, NamedTuple

from sharecons.spark.pipeline.stats import BatchStats

__all__ = [
    "Figures",
    "Point",
    "figures_of",
    "is_requeue",
    "points_of",
]

MAX_POINTS: Final = 240
"""Points of a plot that is as wide as a phone."""

MIN_SECONDS: Final = 0.001

REQUEUE: Final = "requeue-"


def is_requeue(batch: BatchStats) -> bool:
    return batch.batch.startswith(REQUEUE)


class Point(NamedTuple):
    """Some consecutive batches; None means unknown.

    Attributes:
        at: when the last batch was written.
        batches: the number of batches.
        seconds: the time since the batch before. The first batch of a run has the time
            until the second one, or that in which it was written, if that is longer.
        starts_run: another run has written the batch before.
        latency_p50, latency_p99: in seconds; None if there was no record.
        writing: seconds that the slowest batch was written.
    """

    at: datetime
    batches: int
    seconds: float
    starts_run: bool
    rows: int
    quarantined: int
    redelivered: int
    lag: int | None
    backlog: int | None
    latency_p50: float | None
    latency_p99: float | None
    writing: float

    @property
    def records(self) -> int:
        return self.rows + self.quarantined


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of one or several runs.

    Attributes:
        since, until: when the first and the last batch were written.
        bytes: the size of the records' values.
        busy: seconds that the points cover, without the time between two runs.
        reasons: quarantined records by reason, the most frequent first.
        requeued: quarantined records that a requeue has made rows.
    """

    since: datetime
    until: datetime
    batches: int
    runs: int
    rows: int
    quarantined: int
    redelivered: int
    bytes: int
    busy: float
    lag: int | None
    backlog: int | None
    latency_p99: float | None
    reasons: Sequence[tuple[str, int]]
    requeued: int

    @property
    def records(self) -> int:
        return self.rows + self.quarantined


class _Timed(NamedTuple):
    batch: BatchStats
    seconds: float
    starts_run: bool


def points_of(
    batches: Iterable[BatchStats], max_points: int = MAX_POINTS
) -> list[Point]:
    """Return the points of a plot, in order of time."""
    timed = _timed(batches)
    if len(timed) <= max_points:
        return [_point([each]) for each in timed]
    first = timed[0].batch.at
    width = (timed[-1].batch.at - first).total_seconds() / max_points or MIN_SECONDS

    def interval(each: _Timed) -> int:
        number = int((each.batch.at - first).total_seconds() / width)
        return min(number, max_points - 1)

    return [_point(list(group)) for _, group in groupby(timed, key=interval)]


def figures_of(batches: Iterable[BatchStats]) -> Figures | None:
    """Return the figures of batches; None if there are none."""
    found = list(batches)
    timed = _timed(found)
    if not timed:
        return None
    reasons: Counter[str] = Counter()
    for each in timed:
        reasons.update(each.batch.reasons)
    whole = _point(timed)
    last = timed[-1].batch
    return Figures(
        since=timed[0].batch.at,
        until=last.at,
        batches=len(timed),
        runs=len({each.batch.run for each in timed}),
        rows=whole.rows,
        quarantined=whole.quarantined,
        redelivered=whole.redelivered,
        bytes=sum(each.batch.bytes for each in timed),
        busy=whole.seconds,
        lag=_known(last.lag),
        backlog=_known(last.backlog),
        latency_p99=whole.latency_p99,
        reasons=reasons.most_common(),
        requeued=sum(each.rows for each in found if is_requeue(each)),
    )


def _timed(batches: Iterable[BatchStats]) -> list[_Timed]:
    """Return the batches in order of time, without the batches of requeues."""
    ordered = sorted(
        (each for each in batches if not is_requeue(each)),
        key=lambda each: (each.at, each.number),
    )
    times: list[_Timed] = []
    for before, each, after in zip(
        [None, *ordered[:-1]], ordered, [*ordered[1:], None], strict=False
    ):
        if before is not None and before.run == each.run:
            since = (each.at - before.at).total_seconds()
            times.append(_Timed(each, since, starts_run=False))
            continue
        until = 0.0
        if after is not None and after.run == each.run:
            until = (after.at - each.at).total_seconds()
        times.append(_Timed(each, max(each.seconds, until), starts_run=True))
    return times


def _point(timed: Sequence[_Timed]) -> Point:
    batches = [each.batch for each in timed]
    # A batch without records has the latency 0.
    full = [each for each in batches if each.rows or each.quarantined]
    return Point(
        at=batches[-1].at,
        batches=len(batches),
        seconds=max(sum(each.seconds for each in timed), MIN_SECONDS),
        starts_run=timed[0].starts_run,
        rows=sum(each.rows for each in batches),
        quarantined=sum(each.quarantined for each in batches),
        redelivered=sum(each.redelivered for each in batches),
        lag=_known(max(each.lag for each in batches)),
        backlog=_known(max(each.backlog for each in batches)),
        latency_p50=max((each.latency_p50 for each in full), default=None),
        latency_p99=max((each.latency_p99 for each in full), default=None),
        writing=max(each.seconds for each in batches),
    )


def _known(count: int) -> int | None:
    return None if count < 0 else count
