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


def _parse_words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _parse_numbers(text: str) -> list[int]:
    return [int(word.replace("_", "")) for word in _parse_words(text)]


def _subset_of(known: Sequence[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        words = _parse_words(text)
        if unknown := [word for word in words if word not in known]:
            raise argparse.ArgumentTypeError(
                f"unknown: {', '.join(unknown)}; choose from {', '.join(known)}"
            )
        return words

    return parse


# Option, its parser, default and help.
SIZES: Final[Sequence[tuple[str, Callable[[str], Any], Any, str]]] = (
    ("--records", int, 2_500_000, "per topic, at most"),
    ("--sizes", _parse_numbers, [100, 1024, 10240], "value sizes, bytes"),
    ("--codecs", _parse_words, ["none", "lz4"], "compression"),
    ("--partitions", int, 6, "partitions per topic"),
    ("--max-records", int, 500, "max.poll.records"),
    ("--batch-size", int, 16384, "producer batch size, bytes"),
    ("--linger", float, 0.005, "producer linger, seconds"),
    ("--rates", _parse_numbers, [1000, 20_000], "latency: records/s"),
    # Latency varies more between rounds than the other measurements.
    ("--latency-rounds", int, 9, "runs per client"),
    ("--latency-seconds", float, 8.0, "seconds measured per run"),
    ("--warm-up", float, 3.0, "seconds before measuring"),
    ("--redeliveries", int, 50, "records to release"),
    ("--partition-counts", _parse_numbers, [1, 6, 50, 200, 500], "of the topics"),
    ("--consumer-counts", _parse_numbers, [1, 10, 100], "consumers in one process"),
    ("--consumer-sizes", _parse_numbers, [100], "consumers: value sizes, bytes"),
    (
        "--large-cases",
        parse_cases,
        list(CASES),
        "large: value size, compression and producer batch size of each topic, as "
        "10240:lz4:1048576",
    ),
    (
        "--large-bytes",
        int,
        500_000_000,
        "large: values of one topic, bytes; less for small and compressed records",
    ),
    ("--memory-seconds", float, 3.0, "memory: duration"),
    ("--growth-records", int, 500_000, "per topic, for these"),
    ("--slow-seconds", float, 600.0, "slow consumer: duration"),
    ("--pause", float, 0.005, "slow consumer: seconds per record"),
)


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
    add = parser.add_argument
    text = "measurements and their sizes; large: large records and many consumers"
    add("--scenario", choices=SCENARIOS, default=STANDARD, help=text)
    for name, known, of in (
        ("--what", MEASUREMENT_NAMES, "only these of the scenario"),
        ("--clients", tuple(CLIENTS), "only these"),
    ):
        add(name, type=_subset_of(known), help=f"{of}: {', '.join(known)}")
    add("--rounds", type=int, default=3, help="runs per client")
    add("--settle", type=float, default=60.0, help="seconds of broker warm-up")
    add("--quick", action="store_true", help="small run of three minutes")
    add("--kafka-version", default="4.3.0", help="Kafka version to start")
    output = Path("docs/performance") / date.today().isoformat()
    add("--output", type=Path, default=output, help="results directory")
    add("--add", action="store_true", help="append to earlier results")
    for name, parse, default, text in SIZES:
        add(name, type=parse, default=default, help=text)
    return parser
