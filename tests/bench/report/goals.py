"""Performance goals of sharecons, and whether the results reach them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

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
from tests.bench.report.tables import MIB, format_spread, markdown_table, size_of

__all__ = ["GOALS", "Goal", "goal_table", "relative_to"]

Measurements = Sequence[Measurement]
Figure = Callable[[Measurements], Spread | None]
Beside = tuple[str, Value, float]
"""Another client, the figure that is compared with its figure, and the bound."""

KIB: Final = 1 << 10
FEW, MANY = 6, 500  # partitions
BATCHES: Final = (DEFAULT_BATCH, LARGE_BATCH)  # of the producer
FIGURES: Final[Mapping[Value, str]] = {
    records_per_second: "records/s",
    cpu_per_million: "CPU per record",
}
NAMES: Final[Mapping[str, str]] = {
    "confluent": "confluent",
    "confluent-crcs": "confluent with check.crcs=true",
    "franz": "franz-go",
    "raw": "the raw ceiling",
    "raw-8mib": "raw",
    "sharecons": "async for",
}

# Scope, client, other client, figure, and the bound of its ratio.
THROUGHPUT: Final[Sequence[tuple[str, str, str, Value, float]]] = (
    ("async for", "sharecons", "confluent", records_per_second, 2.0),
    ("async for", "sharecons", "confluent", cpu_per_million, 0.6),
    ("batches()", "sharecons-batches", "confluent", records_per_second, 2.0),
    ("async for", "sharecons", "franz", records_per_second, 1.5),
    ("async for", "sharecons", "raw", records_per_second, 0.7),
    ("batches()", "sharecons-batches", "raw", records_per_second, 0.85),
    ("explicit", "sharecons-explicit", "sharecons", records_per_second, 0.85),
)
# Records per second, percentile, maximum ratio to confluent's.
LATENCIES: Final = (
    (1_000, "p50", 1.25),
    (1_000, "p99", 1.1),
    (20_000, "p50", 1.0),
    (20_000, "p99", 1.0),
)
LARGE_RECORDS: Final[Sequence[Beside]] = (
    ("confluent", records_per_second, 1.0),
    ("confluent", cpu_per_million, 1.15),
    ("confluent-crcs", cpu_per_million, 1.0),
)
COMPRESSED_RECORDS: Final[Sequence[Beside]] = (
    ("confluent", records_per_second, 1.0),
    ("confluent", cpu_per_million, 1.1),
)
MANY_CONSUMERS: Final[Sequence[Beside]] = (
    ("confluent", records_per_second, 1.0),
    ("franz", records_per_second, 0.9),
    ("confluent", cpu_per_million, 1.0),
)
UNCOMPRESSED_CASES: Final = tuple(
    Case(size, "none", batch) for size, batch in product((10 * KIB, 100 * KIB), BATCHES)
)
COMPRESSED_CASES: Final = tuple(
    Case(10 * KIB, codec, batch) for codec, batch in product(("lz4", "zstd"), BATCHES)
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


def _largest_memory_part(client: str) -> Figure:
    """Return the largest memory relative to its bound: no measurement exceeds it."""

    def compute(measurements: Measurements) -> Spread | None:
        found = select(measurements, "memory", client=client)
        parts = [(bytes_above_base(each) or 0.0) / memory_bound(each) for each in found]
        return spread_of([max(parts)] if parts else [])

    return compute


def _beside(
    scope: str,
    client: str,
    other: str,
    value: Value,
    bound: float,
    what: str = "throughput",
    **labels: object,
) -> Goal:
    """Return a goal for a client's figure relative to another client's.

    The bound is a minimum of records/s, or a maximum of CPU per record.
    """
    is_speed = value is records_per_second
    return Goal(
        f"{scope}: {FIGURES[value]}, relative to {NAMES[other]}",
        relative_to(client, other, value, what, **labels),
        minimum=bound if is_speed else None,
        maximum=None if is_speed else bound,
    )


def _beside_in_cases(
    scope: str, client: str, cases: Iterable[Case], figures: Iterable[Beside]
) -> Iterator[Goal]:
    for case, figure in product(cases, figures):
        where = f"{scope}, {case_title(case)}"
        yield _beside(where, client, *figure, "large", **case._asdict())


GOALS: Final = (
    *(_beside(*each, "throughput", size=100, codec="none") for each in THROUGHPUT),
    *(
        _beside(*each, size=size, codec="none")
        for size in (KIB, 10 * KIB)
        for each in [(size_of(size), "sharecons", "raw", records_per_second, 0.9)]
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
    *_beside_in_cases("async for", "sharecons", UNCOMPRESSED_CASES, LARGE_RECORDS),
    *_beside_in_cases("async for", "sharecons", COMPRESSED_CASES, COMPRESSED_RECORDS),
    *_beside_in_cases(
        "memoryview",
        "sharecons-views",
        UNCOMPRESSED_CASES,
        (("raw-8mib", cpu_per_million, 1.1),),
    ),
    *(
        _beside(
            f"async for, {consumers} consumers, {size_of(size)}",
            "sharecons",
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


def goal_table(
    measurements: Measurements, goals: Iterable[Goal] = GOALS, what: str = "figure"
) -> Iterator[str]:
    """Yield a table of the goals for which there are results."""
    rows = [
        [
            goal.name,
            goal.bound,
            format_spread(found, _format_ratio),
            "reached" if goal.is_met(found) else "**not reached**",
        ]
        for goal in goals
        if (found := goal.compute(measurements)) is not None
    ]
    if rows:
        yield from markdown_table([what, "goal", "measured", "result"], rows)


def _format_ratio(figure: float) -> str:
    return f"{figure:.2f}" if figure < 10 else f"{figure:.0f}"
