"""What a run of the benchmark can be told."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final, TypeVar

from tests.bench.roster import CLIENTS

__all__ = ["WHAT", "parsed", "records_of"]

T = TypeVar("T")

WHAT: Final = (
    "throughput",
    "first",
    "latency",
    "redelivery",
    "partitions",
    "consumers",
    "slow",
)
MOST_BYTES: Final = 800_000_000  # of a topic's values: larger records are fewer

# Some three minutes: whether everything works, rather than how well.
QUICK: Final[Mapping[str, Any]] = {
    "rounds": 1,
    "settle": 5.0,
    "records": 300_000,
    "sizes": [100],
    "codecs": ["none"],
    "clients": ["sharecons", "sharecons-uvloop", "confluent", "franz", "raw"],
    "rates": [1000],
    "latency_rounds": 1,
    "latency_seconds": 3.0,
    "warm_up": 1.5,
    "redeliveries": 20,
    "partition_counts": [1, 50],
    "consumer_counts": [1, 10],
    "growth_records": 100_000,
    "slow_seconds": 10.0,
}


def parsed(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(given)
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args(given)
    return options


def records_of(size: int, options: argparse.Namespace) -> int:
    """Give how many records of that size a topic is to have."""
    wanted: int = options.records
    return min(wanted, MOST_BYTES // size)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Compare sharecons with its peers on a Kafka that is started for "
        "it. What was measured is kept after each measurement; a table and pictures "
        "are made of it at the end, and by `python -m tests.bench.report`.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    _add_plan(parser.add_argument)
    _add_throughput(parser.add_argument)
    _add_others(parser.add_argument)
    return parser


def _add_plan(add: Callable[..., Any]) -> None:
    add("--what", type=_of(WHAT), default=list(WHAT), help=", ".join(WHAT))
    add("--clients", type=_of(CLIENTS), help=f"only these: {', '.join(CLIENTS)}")
    add("--rounds", type=int, default=3, help="how often each client has its turn")
    add("--settle", type=float, default=60.0, help="seconds of load before all else")
    add("--quick", action="store_true", help="three minutes, to see that it works")
    add("--kafka-version", default="4.3.0", help="which Kafka to start")
    output = Path("docs/performance") / date.today().isoformat()
    add("--output", type=Path, default=output, help="where results are kept")
    add("--add", action="store_true", help="to what an earlier run left there")


def _add_throughput(add: Callable[..., Any]) -> None:
    add("--records", type=int, default=2_500_000, help="fewer where they are large")
    add("--sizes", type=_numbers, default=[100, 1024, 10240], help="bytes of a value")
    add("--codecs", type=_words, default=["none", "lz4"], help="of the producer")
    add("--partitions", type=int, default=6, help="of the topic")
    add("--max-records", type=int, default=500, help="of one fetch")
    add("--batch-size", type=int, default=16384, help="of the producer, in bytes")
    add("--linger", type=float, default=0.005, help="of the producer, in seconds")


def _add_others(add: Callable[..., Any]) -> None:
    add("--rates", type=_numbers, default=[1000, 20_000], help="latency: records/s")
    # The machine's minutes differ in latency more than in anything else.
    add("--latency-rounds", type=int, default=9, help="how often, of latency")
    add("--latency-seconds", type=float, default=8.0, help="to measure each for")
    add("--warm-up", type=float, default=3.0, help="seconds not measured, of latency")
    add("--redeliveries", type=int, default=50, help="records to be released")
    add("--partition-counts", type=_numbers, default=[1, 6, 50, 200, 500])
    add("--consumer-counts", type=_numbers, default=[1, 10, 100], help="in a process")
    add("--growth-records", type=int, default=500_000, help="for these two")
    add("--slow-seconds", type=float, default=600.0, help="of a slow consumer")
    add("--pause", type=float, default=0.005, help="its seconds for each record")


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _numbers(text: str) -> list[int]:
    return [int(word.replace("_", "")) for word in _words(text)]


def _of(known: Sequence[str] | Mapping[str, Any]) -> Callable[[str], list[str]]:
    def chosen(text: str) -> list[str]:
        words = _words(text)
        if unknown := [word for word in words if word not in known]:
            raise argparse.ArgumentTypeError(
                f"{', '.join(unknown)}: not among {', '.join(known)}"
            )
        return words

    return chosen
