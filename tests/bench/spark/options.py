"""What a run can be told, and the turns it takes."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

__all__ = ["OURS", "SINKS", "THEIRS", "WAYS", "Turn", "order", "parsed"]

WAYS: Final = ("ledger", "stream")
SINKS: Final = ("noop", "parquet")
OURS, THEIRS = "sharecons", "java"  # as the other benchmark's report calls them


@dataclass(frozen=True, slots=True)
class Turn:
    """One reading of the whole topic.

    Attributes:
        what: "ledger", beside a batch of the other source's, or "stream".
        sink: where the rows go.
        client: whose source reads.
    """

    what: str
    sink: str
    client: str

    def __str__(self) -> str:
        return f"{self.what}, {self.sink}, {self.client}"


def order(round_: int) -> Iterator[Turn]:
    """Give the turns of a round.

    What is compared runs in succession. Each round begins with another pair, and each
    second one with the other source, so that nobody always goes first.
    """
    pairs = [(what, sink) for what in WAYS for sink in SINKS]
    shift = round_ % len(pairs)
    clients = (OURS, THEIRS) if round_ % 2 == 0 else (THEIRS, OURS)
    for what, sink in pairs[shift:] + pairs[:shift]:
        for client in clients:
            yield Turn(what, sink, client)


def parsed(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.spark",
        description="Compare the share group's source with Spark's own Kafka source, "
        "on a Kafka that is started for it. What was measured is kept after each "
        "measurement.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    _add_plan(parser.add_argument)
    _add_place(parser.add_argument)
    return parser.parse_args(given)


def _add_plan(add: Callable[..., Any]) -> None:
    add("--records", type=_number, default=3_000_000, help="of a topic")
    add("--sizes", type=_number, nargs="+", default=[100, 1024], help="bytes of values")
    add("--rounds", type=_number, default=3, help="measured, after one to warm up")
    add("--batch", type=_number, default=1_000_000, help="maxOffsetsPerTrigger")
    add("--partitions", type=_number, default=6, help="of a topic")


def _add_place(add: Callable[..., Any]) -> None:
    add("--master", default="local[2]", help="of Spark")
    add("--kafka-version", default="4.3.0", help="which Kafka to start")
    add(
        "--jars", help="of Spark's own Kafka source, with commas; else they are fetched"
    )
    output = Path("docs/performance") / date.today().isoformat()
    add("--output", type=Path, default=output, help="where results are kept")
    add("--add", action="store_true", help="to what an earlier run left there")


def _number(text: str) -> int:
    return int(text.replace("_", ""))
