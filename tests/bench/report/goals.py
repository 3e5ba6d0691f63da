"""What sharecons is to reach, and what it reached, as ratios within a round."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.bench.report.summary import (
    Measurement,
    Spread,
    Value,
    cpu,
    field,
    over_base,
    picked,
    ratios,
    settled,
    speed,
    spread,
)
from tests.bench.report.tables import aligned, told

__all__ = ["GOALS", "Goal", "reached"]

Measurements = Sequence[Measurement]
Figure = Callable[[Measurements], Spread | None]

MIB: Final = 1 << 20
FEW, MANY = 6, 500  # partitions
HUNDRED: Final[Mapping[str, Any]] = {"size": 100, "codec": "none"}


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure and its bound: at least so much, or at most."""

    name: str
    figure: Figure
    least: float | None = None
    most: float | None = None

    def is_met(self, found: Spread) -> bool:
        if self.least is not None:
            return found.median >= self.least
        return self.most is None or found.median <= self.most

    @property
    def bound(self) -> str:
        if self.least is not None:
            return f"at least {self.least:g}"
        return f"at most {self.most:g}"


def beside(
    client: str, other: str, value: Value, what: str = "throughput", **labels: object
) -> Figure:
    """A client's figure by another's of the same round."""

    def figure(measurements: Measurements) -> Spread | None:
        found = picked(measurements, what, **labels)
        return ratios(found, value, other).get(client)

    return figure


def alone(client: str, value: Value, what: str) -> Figure:
    def figure(measurements: Measurements) -> Spread | None:
        found = picked(measurements, what, client=client)
        return spread(v for each in found if (v := value(each)) is not None)

    return figure


def grown(measurements: Measurements) -> Spread | None:
    """CPU of a record in many partitions, by that in few, in rounds of one run."""

    def by_round(partitions: int) -> Mapping[object, float]:
        found = picked(
            measurements, "partitions", client="sharecons", partitions=partitions
        )
        return {(e["session"], e["round"]): cpu(e) or 0.0 for e in found}

    few, many = by_round(FEW), by_round(MANY)
    return spread(many[turn] / few[turn] for turn in many if few.get(turn))


def swelling(each: Measurement) -> float | None:
    """The most memory of a slow consumer's last minute by that of its first."""
    samples = settled(each)
    minute = min(60, len(samples) // 2)
    return max(samples[-minute:]) / max(samples[:minute]) if minute else None


def above_base(each: Measurement) -> float | None:
    above = over_base(each)
    return None if above is None else above / MIB


GOALS: Final = (
    Goal(
        "records/s, times confluent's",
        beside("sharecons", "confluent", speed, **HUNDRED),
        least=1.5,
    ),
    Goal(
        "CPU of a record, times confluent's",
        beside("sharecons", "confluent", cpu, **HUNDRED),
        most=0.75,
    ),
    Goal(
        "batches(): records/s, times confluent's",
        beside("sharecons-batches", "confluent", speed, **HUNDRED),
        least=2,
    ),
    Goal(
        "records/s, times franz-go's",
        beside("sharecons", "franz", speed, **HUNDRED),
        least=1,
    ),
    Goal(
        "records/s, times the raw ceiling",
        beside("sharecons", "raw", speed, **HUNDRED),
        least=0.7,
    ),
    Goal(
        "batches(): records/s, times the raw ceiling",
        beside("sharecons-batches", "raw", speed, **HUNDRED),
        least=0.85,
    ),
    Goal(
        "explicit: records/s, times implicit",
        beside("sharecons-explicit", "sharecons", speed, **HUNDRED),
        least=0.85,
    ),
    Goal(
        "1 KiB: records/s, times the raw ceiling",
        beside("sharecons", "raw", speed, size=1024, codec="none"),
        least=0.9,
    ),
    Goal(
        "10 KiB: records/s, times the raw ceiling",
        beside("sharecons", "raw", speed, size=10240, codec="none"),
        least=0.9,
    ),
    Goal(
        "first record, seconds", alone("sharecons", field("first"), "first"), most=1.3
    ),
    *(
        Goal(
            f"latency {name} at {rate:,} records/s, times confluent's",
            beside("sharecons", "confluent", field(name), "latency", wanted_rate=rate),
            most=1,
        )
        for rate in (1_000, 20_000)
        for name in ("p50", "p99")
    ),
    Goal(
        "most memory above the imports, MiB",
        alone("sharecons", above_base, "throughput"),
        most=80,
    ),
    Goal(
        "a slow consumer's memory, last minute by first",
        alone("sharecons", swelling, "slow"),
        most=1.05,
    ),
    Goal(f"CPU of a record, {MANY} partitions by {FEW}", grown, most=1.2),
)


def reached(measurements: Measurements) -> Iterator[str]:
    """Give a table of the goals that there are figures for."""
    rows = [
        [goal.name, goal.bound, told(found, _spelt), _verdict(goal, found)]
        for goal in GOALS
        if (found := goal.figure(measurements)) is not None
    ]
    if rows:
        yield from aligned(["what", "goal", "measured", ""], rows)


def _verdict(goal: Goal, found: Spread) -> str:
    return "reached" if goal.is_met(found) else "**not reached**"


def _spelt(figure: float) -> str:
    return f"{figure:.2f}" if figure < 10 else f"{figure:.0f}"
