"""Performance goals of sharecons, and whether the results reach them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from tests.bench.large import DEFAULT_BATCH, LARGE_BATCH, Case
from tests.bench.memory import memory_bound
from tests.bench.report.large import case_title
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
from tests.bench.report.tables import format_spread, markdown_table, size_of

__all__ = ["GOALS", "Goal", "goal_table"]

Measurements = Sequence[Measurement]
Figure = Callable[[Measurements], Spread | None]

KIB: Final = 1 << 10
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


# Batch sizes of the producer, and records of 10 and 100 KiB.
BATCHES: Final = (DEFAULT_BATCH, LARGE_BATCH)
LARGE_SIZES: Final = (10 * KIB, 100 * KIB)
LARGE_RECORDS: Final = tuple(
    (Case(size, "none", batch), figure)
    for size, batch in product(LARGE_SIZES, BATCHES)
    for figure in (
        ("confluent", records_per_second, 1.0),
        ("confluent", cpu_per_million, 1.15),
        ("confluent-crcs", cpu_per_million, 1.0),
    )
)
COMPRESSED_RECORDS: Final = tuple(
    (Case(10 * KIB, codec, batch), figure)
    for codec, batch in product(("lz4", "zstd"), BATCHES)
    for figure in (
        ("confluent", records_per_second, 1.0),
        ("confluent", cpu_per_million, 1.1),
    )
)
MANY_CONSUMERS: Final = (
    ("confluent", records_per_second, 1.0),
    ("franz", records_per_second, 0.9),
    ("confluent", cpu_per_million, 1.0),
)
NAMES: Final[Mapping[str, str]] = {
    "confluent": "confluent",
    "confluent-crcs": "confluent with check.crcs=true",
    "franz": "franz-go",
}


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


def _goal_beside(
    scope: str, other: str, value: Value, bound: float, what: str, **labels: object
) -> Goal:
    """Return a goal for a figure of `async for`, relative to another client's.

    The bound is a minimum of records/s, or a maximum of CPU per record.
    """
    is_speed = value is records_per_second
    figure = "records/s" if is_speed else "CPU per record"
    return Goal(
        f"async for, {scope}: {figure}, relative to {NAMES[other]}",
        relative_to("sharecons", other, value, what, **labels),
        minimum=bound if is_speed else None,
        maximum=None if is_speed else bound,
    )


def _largest_memory_part(client: str) -> Figure:
    """Return the largest memory relative to its bound: no measurement exceeds it."""

    def compute(measurements: Measurements) -> Spread | None:
        found = select(measurements, "memory", client=client)
        parts = [(bytes_above_base(each) or 0.0) / memory_bound(each) for each in found]
        return spread_of([max(parts)] if parts else [])

    return compute


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
    *(
        _goal_beside(case_title(case), *figure, "large", **case._asdict())
        for case, figure in (*LARGE_RECORDS, *COMPRESSED_RECORDS)
    ),
    *(
        Goal(
            f"memoryview, {case_title(case)}: CPU per record, relative to raw",
            relative_to(
                "sharecons-views",
                "raw-8mib",
                cpu_per_million,
                "large",
                **case._asdict(),
            ),
            maximum=1.1,
        )
        for case in (
            Case(size, "none", batch) for size, batch in product(LARGE_SIZES, BATCHES)
        )
    ),
    *(
        _goal_beside(
            f"{consumers} consumers, {size_of(size)}",
            *figure,
            "consumers",
            consumers=consumers,
            size=size,
        )
        for size, consumers, figure in product(
            (100, 10 * KIB), (10, 100), MANY_CONSUMERS
        )
    ),
    *(
        Goal(
            f"{client}, large records: memory, relative to its bound",
            _largest_memory_part(client),
            maximum=1.0,
        )
        for client in ("sharecons", "sharecons-worker")
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
