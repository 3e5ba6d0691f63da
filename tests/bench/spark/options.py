"""Command-line options, and the order of the measurements."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

__all__ = ["KAFKA", "MODES", "SHARE_GROUP", "SINKS", "Turn", "order", "parse_options"]

MODES: Final = ("ledger", "stream")
SINKS: Final = ("noop", "parquet")
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
    pairs = [(what, sink) for what in MODES for sink in SINKS]
    shift = round_ % len(pairs)
    clients = (SHARE_GROUP, KAFKA) if round_ % 2 == 0 else (KAFKA, SHARE_GROUP)
    for what, sink in pairs[shift:] + pairs[:shift]:
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
    _add_plan(parser.add_argument)
    _add_place(parser.add_argument)
    return parser.parse_args(arguments)


def _add_plan(add: Callable[..., Any]) -> None:
    add("--records", type=_parse_number, default=3_000_000, help="per topic")
    add(
        "--sizes",
        type=_parse_number,
        nargs="+",
        default=[100, 1024],
        help="value sizes, bytes",
    )
    add(
        "--rounds",
        type=_parse_number,
        default=3,
        help="rounds measured, after a warm-up round",
    )
    add("--batch", type=_parse_number, default=1_000_000, help="maxOffsetsPerTrigger")
    add("--partitions", type=_parse_number, default=6, help="per topic")
    add(
        "--record-locks",
        type=_parse_number,
        default=2000,
        help="share.partition.max.record.locks of the groups",
    )


def _add_place(add: Callable[..., Any]) -> None:
    add("--master", default="local[2]", help="master URL of Spark")
    add("--kafka-version", default="4.3.0", help="Kafka version to start")
    add(
        "--jars",
        help="jars of Spark's Kafka source, comma-separated; default: download",
    )
    output = Path("docs/performance") / date.today().isoformat()
    add("--output", type=Path, default=output, help="results directory")
    add("--add", action="store_true", help="append to earlier results")


def _parse_number(text: str) -> int:
    return int(text.replace("_", ""))
