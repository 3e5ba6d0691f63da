"""Command-line options, and the order of the measurements."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

__all__ = ["KAFKA", "PAIRS", "SHARE_GROUP", "SINKS", "Turn", "order", "parse_options"]

SINKS: Final = ("noop", "parquet")
PAIRS: Final = [(what, sink) for what in ("ledger", "stream") for sink in SINKS]
SHARE_GROUP, KAFKA = "sharecons", "java"  # keys of the other benchmark's report


@dataclass(frozen=True, slots=True)
class Turn:
    """One measurement: a source reads the whole topic.

    Attributes:
        what: "ledger" (batch query) or "stream".
        sink: format of the sink.
        client: SHARE_GROUP or KAFKA, the source that reads.
    """

    what: str
    sink: str
    client: str

    def __str__(self) -> str:
        return f"{self.what}, {self.sink}, {self.client}"


def order(round_: int) -> Iterator[Turn]:
    """Yield the turns of a round.

    The two sources of a comparison run in succession. Each round starts with a
    different pair, and every second round with the other source.
    """
    shift = round_ % len(PAIRS)
    clients = (SHARE_GROUP, KAFKA) if round_ % 2 == 0 else (KAFKA, SHARE_GROUP)
    for what, sink in PAIRS[shift:] + PAIRS[:shift]:
        for client in clients:
            yield Turn(what, sink, client)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.spark",
        description="Compare the share-group source with Spark's own Kafka source, on "
        "a Kafka broker that this program starts. Results are saved after each "
        "measurement.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    numbers: list[tuple[str, int, str]] = [
        ("--records", 3_000_000, "per topic"),
        ("--rounds", 3, "rounds measured, after a warm-up round"),
        ("--batch", 1_000_000, "maxOffsetsPerTrigger"),
        ("--partitions", 6, "per topic"),
        ("--record-locks", 2000, "share.partition.max.record.locks of the groups"),
    ]
    for name, default, text in numbers:
        add(name, type=int, default=default, help=text)
    add("--sizes", type=int, nargs="+", default=[100, 1024], help="of values, bytes")
    add("--master", default="local[2]", help="master URL of Spark")
    add("--kafka-version", default="4.3.0", help="Kafka version to start")
    add("--jars", help="of Spark's Kafka source, comma-separated; default: download")
    output = Path("docs/performance") / date.today().isoformat()
    add("--output", type=Path, default=output, help="results directory")
    add("--add", action="store_true", help="append to earlier results")
    return parser.parse_args(arguments)
