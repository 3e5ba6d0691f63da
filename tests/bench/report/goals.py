"""Performance goals of sharecons, and whether the results reach them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.bench.report.summary import (
    Measurement,
    Spread,
    Value,
    bytes_above_base,
    cpu_per_million,
    field,
    ratios,
    records_per_second,
    select,
    settled_samples,
    spread_of,
)
from tests.bench.report.tables import format_spread, markdown_table

__all__ = ["GOALS", "Goal", "goal_table"]

Measurements = Sequence[Measurement]
Figure = Callable[[Measurements], Spread | None]

MIB: Final = 1 << 20
FEW, MANY = 6, 500  # partitions
HUNDRED: Final[Mapping[str, Any]] = {"size": 100, "codec": "none"}
# Records per second, percentile, maximum ratio to confluent's.
LATENCIES: Final = (
    (1_000, "p50", 1.25),
    (1_000, "p99", 1.1),
    (20_000, "p50", 1.0),
    (20_000, "p99", 1.0),
)


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure with a minimum or a maximum for its median."""

    name: str
    compute: Figure
    minimum: float | None = None
    maximum: float | None = None

    def is_met(self, found: Spread) -> bool:
        if self.minimum is not None:
            return found.median >= self.minimum
        return self.maximum is None or found.median <= self.maximum

    @property
    def bound(self) -> str:
        if self.minimum is not None:
            return f"at least {self.minimum:g}"
        return f"at most {self.maximum:g}"


def relative_to(
    client: str, other: str, value: Value, what: str = "throughput", **labels: object
) -> Figure:
    """Return a client's figure divided by another's of the same round."""

    def compute(measurements: Measurements) -> Spread | None:
        found = select(measurements, what, **labels)
        return ratios(found, value, other).get(client)

    return compute


def figures_of(client: str, value: Value, what: str) -> Figure:
    def compute(measurements: Measurements) -> Spread | None:
        found = select(measurements, what, client=client)
        return spread_of(v for each in found if (v := value(each)) is not None)

    return compute


def partition_cpu_growth(measurements: Measurements) -> Spread | None:
    """Return CPU per record with many partitions, divided by that with few."""

    def by_round(partitions: int) -> Mapping[object, float]:
        found = select(
            measurements, "partitions", client="sharecons", partitions=partitions
        )
        return {(e["session"], e["round"]): cpu_per_million(e) or 0.0 for e in found}

    few, many = by_round(FEW), by_round(MANY)
    return spread_of(many[turn] / few[turn] for turn in many if few.get(turn))


def memory_growth(each: Measurement) -> float | None:
    """Return a slow consumer's peak memory in its last minute / in its first."""
    samples = settled_samples(each)
    minute = min(60, len(samples) // 2)
    return max(samples[-minute:]) / max(samples[:minute]) if minute else None


def mebibytes_above_base(each: Measurement) -> float | None:
    above = bytes_above_base(each)
    return None if above is None else above / MIB


GOALS: Final = (
    Goal(
        "async for: records/s, relative to confluent",
        relative_to("sharecons", "confluent", records_per_second, **HUNDRED),
        minimum=2.0,
    ),
    Goal(
        "async for: CPU per record, relative to confluent",
        relative_to("sharecons", "confluent", cpu_per_million, **HUNDRED),
        maximum=0.6,
    ),
    Goal(
        "batches(): records/s, relative to confluent",
        relative_to("sharecons-batches", "confluent", records_per_second, **HUNDRED),
        minimum=2,
    ),
    Goal(
        "async for: records/s, relative to franz-go",
        relative_to("sharecons", "franz", records_per_second, **HUNDRED),
        minimum=1.5,
    ),
    Goal(
        "async for: records/s, relative to the raw ceiling",
        relative_to("sharecons", "raw", records_per_second, **HUNDRED),
        minimum=0.7,
    ),
    Goal(
        "batches(): records/s, relative to the raw ceiling",
        relative_to("sharecons-batches", "raw", records_per_second, **HUNDRED),
        minimum=0.85,
    ),
    Goal(
        "explicit: records/s, relative to async for",
        relative_to("sharecons-explicit", "sharecons", records_per_second, **HUNDRED),
        minimum=0.85,
    ),
    Goal(
        "1 KiB: records/s, relative to the raw ceiling",
        relative_to("sharecons", "raw", records_per_second, size=1024, codec="none"),
        minimum=0.9,
    ),
    Goal(
        "10 KiB: records/s, relative to the raw ceiling",
        relative_to("sharecons", "raw", records_per_second, size=10240, codec="none"),
        minimum=0.9,
    ),
    Goal(
        "first record, seconds",
        figures_of("sharecons", field("first"), "first"),
        maximum=1.3,
    ),
    *(
        Goal(
            f"latency {name} at {rate:,} records/s, relative to confluent",
            relative_to(
                "sharecons", "confluent", field(name), "latency", wanted_rate=rate
            ),
            maximum=maximum,
        )
        for rate, name, maximum in LATENCIES
    ),
    Goal(
        "peak memory above imports, MiB",
        figures_of("sharecons", mebibytes_above_base, "throughput"),
        maximum=80,
    ),
    Goal(
        "slow consumer: memory, last minute / first minute",
        figures_of("sharecons", memory_growth, "slow"),
        maximum=1.05,
    ),
    Goal(
        f"CPU per record, {MANY} partitions / {FEW}",
        partition_cpu_growth,
        maximum=1.2,
    ),
)


def goal_table(measurements: Measurements) -> Iterator[str]:
    """Yield a table of the goals for which there are results."""
    rows = [
        [
            goal.name,
            goal.bound,
            format_spread(found, _format_ratio),
            _verdict(goal, found),
        ]
        for goal in GOALS
        if (found := goal.compute(measurements)) is not None
    ]
    if rows:
        yield from markdown_table(["figure", "goal", "measured", "result"], rows)


def _verdict(goal: Goal, found: Spread) -> str:
    return "reached" if goal.is_met(found) else "**not reached**"


def _format_ratio(figure: float) -> str:
    return f"{figure:.2f}" if figure < 10 else f"{figure:.0f}"
