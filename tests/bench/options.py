"""Command-line options of the benchmark."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar

from tests.bench.large import CASES, parse_cases
from tests.bench.roster import CLIENTS

__all__ = ["LARGE", "MEASUREMENT_NAMES", "STANDARD", "parse_options", "record_count"]

T = TypeVar("T")

STANDARD, LARGE = "standard", "large"
SCENARIOS: Final[Mapping[str, Sequence[str]]] = {
    STANDARD: (
        "throughput",
        "first",
        "latency",
        "redelivery",
        "partitions",
        "consumers",
        "slow",
    ),
    LARGE: ("large", "consumers", "memory"),
}
MEASUREMENT_NAMES: Final = tuple(dict.fromkeys(chain(*SCENARIOS.values())))
MAX_BYTES: Final = 800_000_000  # values of one topic; larger records mean fewer of them

# About twenty minutes.
LARGE_DEFAULTS: Final[Mapping[str, Any]] = {
    "rounds": 6,
    "settle": 20.0,
    "records": 300_000,  # for the warm-up
    "consumer_counts": [10, 100],
    "consumer_sizes": [100, 10240],
    "growth_records": 1_000_000,
}

# About three minutes: checks that everything works; the figures mean little.
QUICK: Final[Mapping[str, Any]] = {
    "rounds": 1,
    "settle": 5.0,
    "records": 300_000,
    "sizes": [100],
    "codecs": ["none"],
    "rates": [1000],
    "latency_rounds": 1,
    "latency_seconds": 3.0,
    "warm_up": 1.5,
    "redeliveries": 20,
    "partition_counts": [1, 50],
    "consumer_counts": [1, 10],
    "growth_records": 100_000,
    "slow_seconds": 10.0,
    "large_bytes": 100_000_000,
    "memory_seconds": 3.0,
}


QUICK_CLIENTS: Final = ["sharecons", "sharecons-uvloop", "confluent", "franz", "raw"]


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.scenario == LARGE:
        parser.set_defaults(**LARGE_DEFAULTS)
    if options.quick:
        clients = {} if options.scenario == LARGE else {"clients": QUICK_CLIENTS}
        parser.set_defaults(**QUICK, **clients)
    options = parser.parse_args(arguments)
    options.what = options.what or list(SCENARIOS[options.scenario])
    return options


def record_count(size: int, options: argparse.Namespace) -> int:
    """Return the number of records of this size in a topic."""
    wanted: int = options.records
    return min(wanted, MAX_BYTES // size)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Compare sharecons with other share-group clients on a broker that "
        "this program starts. Results are saved after each measurement. Tables "
        "and pictures are written at the end, or by `python -m tests.bench.report`.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    _add_plan(parser.add_argument)
    _add_throughput(parser.add_argument)
    _add_others(parser.add_argument)
    return parser


def _add_plan(add: Callable[..., Any]) -> None:
    add(
        "--scenario",
        choices=SCENARIOS,
        default=STANDARD,
        help="measurements and their sizes: large is for large and compressed records, "
        "and many consumers",
    )
    add(
        "--what",
        type=_subset_of(MEASUREMENT_NAMES),
        help=f"only these of the scenario: {', '.join(MEASUREMENT_NAMES)}",
    )
    add(
        "--clients",
        type=_subset_of(CLIENTS),
        help=f"only these: {', '.join(CLIENTS)}",
    )
    add("--rounds", type=int, default=3, help="runs per client")
    add("--settle", type=float, default=60.0, help="seconds of broker warm-up")
    add("--quick", action="store_true", help="small run of three minutes")
    add("--kafka-version", default="4.3.0", help="Kafka version to start")
    output = Path("docs/performance") / date.today().isoformat()
    add("--output", type=Path, default=output, help="results directory")
    add("--add", action="store_true", help="append to earlier results")


def _add_throughput(add: Callable[..., Any]) -> None:
    add("--records", type=int, default=2_500_000, help="per topic, at most")
    add(
        "--sizes",
        type=_parse_numbers,
        default=[100, 1024, 10240],
        help="value sizes, bytes",
    )
    add(
        "--codecs",
        type=_parse_words,
        default=["none", "lz4"],
        help="compression",
    )
    add("--partitions", type=int, default=6, help="partitions per topic")
    add("--max-records", type=int, default=500, help="max.poll.records")
    add("--batch-size", type=int, default=16384, help="producer batch size, bytes")
    add("--linger", type=float, default=0.005, help="producer linger, seconds")


def _add_others(add: Callable[..., Any]) -> None:
    add(
        "--rates",
        type=_parse_numbers,
        default=[1000, 20_000],
        help="latency: records/s",
    )
    # Latency varies more between rounds than the other measurements.
    add("--latency-rounds", type=int, default=9, help="runs per client")
    add("--latency-seconds", type=float, default=8.0, help="seconds measured per run")
    add("--warm-up", type=float, default=3.0, help="seconds before measuring")
    add("--redeliveries", type=int, default=50, help="records to release")
    add("--partition-counts", type=_parse_numbers, default=[1, 6, 50, 200, 500])
    add(
        "--consumer-counts",
        type=_parse_numbers,
        default=[1, 10, 100],
        help="consumers in one process",
    )
    add(
        "--consumer-sizes",
        type=_parse_numbers,
        default=[100],
        help="consumers: value sizes, bytes",
    )
    add(
        "--large-cases",
        type=parse_cases,
        default=list(CASES),
        help="large: value size, compression and producer batch size of each topic, as "
        "10240:lz4:1048576",
    )
    add(
        "--large-bytes",
        type=int,
        default=500_000_000,
        help="large: values of one topic, bytes; less for small and compressed records",
    )
    add("--memory-seconds", type=float, default=3.0, help="memory: duration")
    add("--growth-records", type=int, default=500_000, help="per topic, for these")
    add("--slow-seconds", type=float, default=600.0, help="slow consumer: duration")
    add("--pause", type=float, default=0.005, help="slow consumer: seconds per record")


def _parse_words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _parse_numbers(text: str) -> list[int]:
    return [int(word.replace("_", "")) for word in _parse_words(text)]


def _subset_of(known: Sequence[str] | Mapping[str, Any]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        words = _parse_words(text)
        if unknown := [word for word in words if word not in known]:
            raise argparse.ArgumentTypeError(
                f"unknown: {', '.join(unknown)}; choose from {', '.join(known)}"
            )
        return words

    return parse
